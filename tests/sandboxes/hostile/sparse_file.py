"""Claims a file of ten terabytes."""

# stopped by: file size, None
import os

try:
    os.truncate(os.open("huge", os.O_CREAT | os.O_RDWR) and "huge", 10 << 40)
    print("ESCAPED")
except OSError:
    pass
