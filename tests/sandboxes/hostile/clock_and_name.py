"""Sets the machine's clock and name."""

import socket
import time

for action in (lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()), lambda: socket.sethostname("owned")):
    try:
        action()
        print("ESCAPED")
    except OSError:
        pass
