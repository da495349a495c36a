"""Every child forks too; itself bounded at 256."""

# limits: processes=64 seconds=10
# stopped by: processes
import os
import time

for _ in range(8):
    try:
        os.fork()
    except OSError:
        pass
time.sleep(600)
