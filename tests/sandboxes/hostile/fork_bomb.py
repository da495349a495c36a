"""Forks until it may not; itself bounded at 400."""

# limits: processes=64 seconds=10
# stopped by: processes
import os, time

for _ in range(400):
    try:
        if os.fork() == 0:
            time.sleep(600)
    except OSError:
        pass
time.sleep(600)
