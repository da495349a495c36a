"""Calls the kernel by another architecture's numbers."""

import ctypes

print(ctypes.CDLL(None).syscall(0x40000000 | 165, b"a", b"b", b"c", 0, 0))
print("ESCAPED")
