"""Each generation replaces itself before it can be found; itself bounded at 2,000."""

import os
import time

if os.fork() == 0:
    os.setsid()
    for _ in range(2000):
        if os.fork():
            os._exit(0)
        time.sleep(0.001)
