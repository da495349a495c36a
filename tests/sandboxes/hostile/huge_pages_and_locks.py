"""Locks memory and asks for huge pages."""

# limits: memory=134217728 seconds=10
# stopped by: memory, None
import ctypes
import mmap

library = ctypes.CDLL(None)
if library.mlockall(3) == 0 and int(open("/proc/self/status").read().split("VmLck:")[1].split()[0]) > 128 << 10:
    print("ESCAPED")
try:
    mmap.mmap(-1, 512 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)[0] = 1
    print("ESCAPED")
except OSError:
    pass
