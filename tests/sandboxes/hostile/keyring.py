"""Reads and writes the kernel's keyring."""

import ctypes

call = ctypes.CDLL(None).syscall
for number, arguments in ((248, (b"user", b"k", b"v", 1, -3)), (250, (0, -3, 1)), (249, (b"user", b"k", None, -3))):
    if call(number, *arguments) >= 0:
        print("ESCAPED", number)
