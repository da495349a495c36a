"""Reads the command line of every process it can see; the machine's own are not for it."""

import glob

for name in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        print(open(name, errors="replace").read())
    except OSError:
        pass
