"""Makes namespaces by cloning, the old and the new way."""

import ctypes
import os

call = ctypes.CDLL(None).syscall
for flag in (0x10000000, 0x10020000, 0x50000000):
    pid = call(56, flag | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid > 0:
        print("ESCAPED clone")
    arguments = (ctypes.c_uint64 * 11)(flag, 0, 0, 0, 17)
    pid = call(435, arguments, 88)
    if pid == 0:
        os._exit(0)
    if pid > 0:
        print("ESCAPED clone3")
