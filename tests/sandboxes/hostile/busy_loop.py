"""Computes without end."""

# limits: cpu_seconds=1
# stopped by: cpu
while True:
    pass
