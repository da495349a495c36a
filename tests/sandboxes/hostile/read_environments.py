"""Reads the environment of every process it can see."""

import glob

for name in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/task/*/environ"):
    try:
        print(open(name, errors="replace").read())
    except OSError:
        pass
