"""Looks for control groups to change its own limits."""

import ctypes
import glob
import os

library = ctypes.CDLL(None)
for kind in (b"cgroup", b"cgroup2"):
    if library.mount(b"none", os.getcwdb(), kind, 0, b"pids" if kind == b"cgroup" else None) == 0:
        print("ESCAPED mount")
for name in glob.glob("/sys/fs/cgroup/**/cgroup.procs", recursive=True):
    print("ESCAPED", name)
