"""Makes device nodes of its own."""

import os
import stat

for kind in (stat.S_IFBLK, stat.S_IFCHR):
    for major, minor in ((254, 0), (8, 0), (259, 0), (1, 1), (7, 0)):
        try:
            os.mknod("node", kind | 0o600, os.makedev(major, minor))
            print("ESCAPED")
            os.open("node", os.O_RDONLY)
        except OSError:
            pass
