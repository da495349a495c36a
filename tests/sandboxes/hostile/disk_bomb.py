"""Fills the disk with files; itself bounded at 1 GB."""

# limits: disk=33554432 seconds=20
# stopped by: disk
import time

for number in range(256):
    open(f"file{number}", "wb").write(bytes(4 << 20))
time.sleep(600)
