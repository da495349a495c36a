"""Makes namespaces, in which it would be root."""

import ctypes

library = ctypes.CDLL(None)
for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x08000000, 0x04000000, 0x02000000, 0x80):
    if library.unshare(flag) == 0 or library.unshare(flag | 0x10000000) == 0:
        print("ESCAPED unshare", hex(flag))
