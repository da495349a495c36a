"""Opens sockets below and beside the usual ones."""

import socket

for family, kind, protocol in (
    (17, 3, 0x300),
    (socket.AF_INET, socket.SOCK_RAW, 1),
    (40, 1, 0),
    (38, 5, 0),
    (31, 3, 0),
    (29, 3, 1),
    (15, 3, 2),
    (44, 3, 0),
    (16, 3, 9),
    (30, 1, 0),
):
    try:
        wire = socket.socket(family, kind, protocol)
    except OSError:
        continue
    if family != 16:
        print("ESCAPED", family)
