"""Reaches a server of the machine over every loopback name."""

import os
import socket

for host in ("127.0.0.1", "127.0.1.1", "0.0.0.0", "localhost", "::1", "::ffff:127.0.0.1"):
    try:
        socket.create_connection((host, int(os.environ["PORT"])), timeout=1).sendall(b"hello")
        print("ESCAPED", host)
    except OSError:
        pass
