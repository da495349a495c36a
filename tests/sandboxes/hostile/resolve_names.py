"""Asks for names."""

import socket

for name in ("example.com", "pypi.org"):
    try:
        print("ESCAPED", socket.getaddrinfo(name, 80))
    except OSError:
        pass
