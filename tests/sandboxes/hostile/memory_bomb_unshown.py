"""Takes memory that no process's size shows: memory files; itself bounded at 1 GB."""

# limits: memory=134217728 seconds=10
# stopped by: memory, file size, None
import os

try:
    handle = os.memfd_create("hidden")
except OSError:
    raise SystemExit("refused")
for _ in range(1024):
    os.write(handle, b"x" * (1 << 20))
print("ESCAPED")
