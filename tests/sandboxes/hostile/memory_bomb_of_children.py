"""Takes memory in many small processes; itself bounded at 960 MB."""

# limits: memory=134217728 seconds=10
# stopped by: memory
import os
import time

for _ in range(5):
    os.fork()
taken = bytearray(b"x" * (30 << 20))
time.sleep(600)
