"""Stops instead of ending."""

# limits: seconds=1
# stopped by: time
import os, signal

os.kill(os.getpid(), signal.SIGSTOP)
