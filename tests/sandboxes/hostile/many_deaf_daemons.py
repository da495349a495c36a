"""Leaves thirty daemons that ignore every signal they can."""

import os
import signal
import time

for _ in range(30):
    if os.fork() == 0:
        os.setsid()
        for number in range(1, 32):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        time.sleep(600)
