"""Kills a process of the machine by its number."""

import os
import signal

pid = int(os.environ["VICTIM"])
for action in (
    lambda: os.kill(pid, signal.SIGKILL),
    lambda: os.killpg(pid, signal.SIGKILL),
    lambda: signal.pidfd_send_signal(os.pidfd_open(pid), 9),
):
    try:
        action()
        print("ESCAPED")
    except OSError:
        pass
