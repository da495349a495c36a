"""Takes memory that is mapped and shared; itself bounded at 1 GB."""

# limits: memory=134217728 seconds=10
# stopped by: memory
import mmap

taken = mmap.mmap(-1, 1 << 30)
for start in range(0, 1 << 30, 1 << 20):
    taken[start : start + (1 << 20)] = b"x" * (1 << 20)
