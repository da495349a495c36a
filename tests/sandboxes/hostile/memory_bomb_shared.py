"""Takes shared memory of the old kind; itself bounded at 1 GB."""

# limits: memory=134217728 seconds=10
# stopped by: memory, None
import ctypes

library = ctypes.CDLL(None)
library.shmat.restype = ctypes.c_void_p
for number in range(16):
    segment = library.shmget(number + 1, 64 << 20, 0o1600)
    if segment < 0:
        raise SystemExit("refused")
    ctypes.memset(library.shmat(segment, None, 0), 1, 64 << 20)
print("ESCAPED")
