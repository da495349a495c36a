"""Looks at the person's screen and desktop."""

import os
import socket

for name in ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "XAUTHORITY"):
    if name in os.environ:
        print("ESCAPED", name)
for name in ("\0/tmp/.X11-unix/X0", "/tmp/.X11-unix/X0"):
    try:
        socket.socket(socket.AF_UNIX).connect(name)
        print("ESCAPED", name)
    except OSError:
        pass
