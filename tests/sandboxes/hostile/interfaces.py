"""Has no network but its own loopback, and can make none."""

import socket
import subprocess

if [name for _, name in socket.if_nameindex() if name != "lo"]:
    print("ESCAPED")
for command in (["ip", "link", "add", "septet0", "type", "dummy"], ["ip", "link", "set", "lo", "down"]):
    try:
        if subprocess.run(command, capture_output=True).returncode == 0:
            print("ESCAPED", command)
    except OSError:
        pass
