"""Enters the namespaces of other processes."""

import ctypes
import glob
import os

library = ctypes.CDLL(None)
for name in glob.glob("/proc/[0-9]*/ns/*"):
    try:
        if library.setns(os.open(name, os.O_RDONLY), 0) == 0:
            print("ESCAPED", name)
    except OSError:
        pass
