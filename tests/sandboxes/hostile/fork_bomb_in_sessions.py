"""Each child starts a session and is adopted by another parent; itself bounded at 400."""

# limits: processes=64 seconds=10
# stopped by: processes
import os
import time

for _ in range(200):
    try:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
    except OSError:
        pass
time.sleep(600)
