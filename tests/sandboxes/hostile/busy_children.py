"""Computes without end in children that replace each other; itself bounded at 300."""

# limits: cpu_seconds=2 seconds=20
# stopped by: cpu
import os
import time

for _ in range(300):
    if os.fork() == 0:
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass
        os._exit(0)
    os.wait()
