"""Kills all it can reach."""

import os
import signal

for number in (signal.SIGTERM, signal.SIGKILL):
    try:
        os.kill(-1, number)
    except OSError:
        pass
