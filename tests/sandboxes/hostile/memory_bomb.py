"""Takes memory; itself bounded at 1 GB."""

# limits: memory=134217728 seconds=10
# stopped by: memory
taken = [bytearray(b"x" * (1 << 20)) for _ in range(1024)]
