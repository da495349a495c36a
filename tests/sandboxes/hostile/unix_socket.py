"""Talks to a socket of the machine by its file."""

import os
import socket

try:
    socket.socket(socket.AF_UNIX).connect(os.environ["SOCKET"])
    print("ESCAPED")
except OSError:
    pass
