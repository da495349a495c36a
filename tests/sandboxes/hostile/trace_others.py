"""Traces and reads its parents."""

import ctypes
import os

library = ctypes.CDLL(None)
buffer = ctypes.create_string_buffer(64)
for pid in (1, 2, os.getppid(), int(os.environ["VICTIM"])):
    if pid == os.getpid():
        continue
    if library.ptrace(16, pid, None, None) == 0:
        print("ESCAPED attach", pid)
    if library.ptrace(0x4206, pid, None, None) == 0:
        print("ESCAPED seize", pid)
    vector = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 8)
    if library.process_vm_readv(pid, vector, 1, vector, 1, 0) >= 0:
        print("ESCAPED read", pid)
