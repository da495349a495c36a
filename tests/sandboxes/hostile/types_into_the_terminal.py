"""Puts words into somebody's terminal."""

import fcntl
import termios

for fd in range(3):
    for request, argument in ((termios.TIOCSTI, b"x"), (0x541C, b"\x02")):
        try:
            fcntl.ioctl(fd, request, argument)
            print("ESCAPED")
        except OSError:
            pass
