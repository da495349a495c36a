"""Fills the disk with empty files; itself bounded at 3,000."""

# limits: disk=33554432 seconds=30
# stopped by: disk
import os
import time

for number in range(3_000):
    if number % 1000 == 0:
        os.mkdir(f"d{number // 1000}")
    os.close(os.open(f"d{number // 1000}/{number}", os.O_CREAT | os.O_WRONLY))
time.sleep(600)
