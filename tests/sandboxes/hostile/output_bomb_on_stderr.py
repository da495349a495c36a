"""Talks without end where errors go, in bytes that are no text."""

# limits: output=1048576
# stopped by: output
import os

while True:
    os.write(2, b"\xff\x00\x1b" * 4096)
