"""Talks to a socket of the machine that has no file."""

import os
import socket

try:
    socket.socket(socket.AF_UNIX).connect("\0" + os.environ["ABSTRACT"])
    print("ESCAPED")
except OSError:
    pass
