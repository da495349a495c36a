"""Children talk while the parent has ended."""

# stopped by: None
import os
import time

for _ in range(5):
    if os.fork() == 0:
        while True:
            print("still here")
            time.sleep(0.01)
