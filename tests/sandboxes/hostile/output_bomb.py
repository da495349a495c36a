"""Talks without end."""

# limits: output=1048576
# stopped by: output
while True:
    print("x" * 4096)
