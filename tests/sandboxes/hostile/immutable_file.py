"""Makes a file that nobody can remove."""

import array
import fcntl

open("stone", "w").write("x")
for flags in (0x10, 0x20):
    try:
        fcntl.ioctl(open("stone"), 0x40086602, array.array("l", [flags]))
        print("ESCAPED")
    except OSError:
        pass
