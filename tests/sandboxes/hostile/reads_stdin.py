"""Asks for input and looks for a terminal."""

import os
import sys

if sys.stdin.read():
    print("ESCAPED")
for name in ("/dev/tty", "/dev/console", "/dev/tty0", "/dev/pts/0", "/dev/pts/1"):
    try:
        os.open(name, os.O_RDWR)
        print("ESCAPED", name)
    except OSError:
        pass
