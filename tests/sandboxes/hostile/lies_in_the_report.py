"""Writes a false report into every descriptor."""

# exit code: 3
import os

for fd in range(3, 1024):
    try:
        os.write(fd, b'{"exit-code": 0}\n')
        print("ESCAPED", fd)
    except OSError:
        pass
os._exit(3)
