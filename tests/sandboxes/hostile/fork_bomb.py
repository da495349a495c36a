"""Forks until it may not; itself bounded at 400."""

# limits: processes=64 seconds=10
# stopped by: processes
import os
import time

failures = 0
for number in range(400):
    try:
        if os.fork() == 0:
            time.sleep(600)
    except OSError as error:
        if not failures:
            print(number, error)
        failures += 1
print(failures)
time.sleep(600)
