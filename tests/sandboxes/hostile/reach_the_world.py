"""Reaches outside by every means."""

import socket

for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    for host in ("1.1.1.1", "8.8.8.8", "169.254.169.254", "10.0.0.1", "192.168.0.1", "2606:4700:4700::1111", "255.255.255.255"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            with socket.socket(family, kind) as wire:
                wire.settimeout(1)
                wire.connect((host, 53))
                wire.sendall(b"x")
                print("ESCAPED", host)
        except OSError:
            pass
