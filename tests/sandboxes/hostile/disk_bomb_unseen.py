"""Fills the disk with a file that has no name any more; itself bounded at 1 GB."""

# limits: disk=16777216 seconds=20
# stopped by: disk
import os
import time

file = open("unseen", "wb", buffering=0)
os.unlink("unseen")
for _ in range(1024):
    file.write(bytes(1 << 20))
    os.fsync(file)
time.sleep(600)
