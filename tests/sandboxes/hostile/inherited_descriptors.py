"""Counts what it was handed besides its three streams."""

import os

found = [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 2]
for fd in found:
    try:
        target = os.readlink(f"/proc/self/fd/{fd}")
        if "/proc/" not in target:
            print("ESCAPED", fd, target)
    except OSError:
        pass
