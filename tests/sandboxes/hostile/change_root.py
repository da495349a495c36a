"""Climbs out of a root of its own."""

import os

os.makedirs("jail", exist_ok=True)
try:
    os.chroot("jail")
    print("ESCAPED")
except OSError:
    pass
