"""Starts threads; itself bounded at 400."""

# limits: processes=64 seconds=10
# stopped by: processes
import threading
import time

for _ in range(400):
    try:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    except RuntimeError:
        time.sleep(0.01)
time.sleep(600)
