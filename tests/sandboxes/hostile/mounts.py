"""Mounts and unmounts, the old and the new way."""

import ctypes
import os

library = ctypes.CDLL(None)
here = os.getcwdb()
if library.mount(b"proc", here, b"proc", 0, None) == 0:
    print("ESCAPED proc")
if library.mount(b"tmpfs", here, b"tmpfs", 0, None) == 0:
    print("ESCAPED tmpfs")
if library.mount(b"/", here, None, 4096, None) == 0:
    print("ESCAPED bind")
for place in (b"/proc/sys", b"/", b"/usr", b"/etc", b"/tmp", here):
    if library.umount2(place, 2) == 0:
        print("ESCAPED umount", place)
    if library.mount(b"none", place, None, 32 | 4096, None) == 0:
        print("ESCAPED remount", place)
for number, arguments in (
    (430, (b"tmpfs", 0)),
    (428, (-100, b"/", 1)),
    (442, (-100, b"/", 0, (ctypes.c_uint64 * 4)(0, 1), 32)),
    (155, (here, here)),
    (429, (-100, b"/tmp", -100, here, 0)),
):
    if library.syscall(number, *arguments) >= 0:
        print("ESCAPED", number)
