"""Fills the folders that are memory; itself bounded at 512 MB."""

# limits: memory=134217728 seconds=10
# stopped by: memory, file size, None
written = 0
for name in ("/dev/shm/x", "/tmp/x"):
    try:
        with open(name, "wb", buffering=0) as file:
            for _ in range(256):
                written += file.write(b"x" * (1 << 20))
    except OSError:
        pass
if written > 140 << 20:
    print("ESCAPED", written)
