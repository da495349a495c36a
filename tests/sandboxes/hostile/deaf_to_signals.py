"""Ignores what it can and stays."""

# limits: seconds=1
# stopped by: time
import signal
import time

for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    time.sleep(600)
