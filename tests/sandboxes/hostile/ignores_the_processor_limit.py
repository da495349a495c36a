"""Catches the signal of the processor limit and goes on."""

# limits: cpu_seconds=1
# stopped by: cpu
import signal

signal.signal(signal.SIGXCPU, signal.SIG_IGN)
while True:
    pass
