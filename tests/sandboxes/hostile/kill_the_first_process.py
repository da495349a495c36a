"""Kills or stops the first process of its own world."""

import os
import signal

for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP):
    for pid in {1, os.getppid()}:
        try:
            os.kill(pid, number)
        except OSError:
            pass
