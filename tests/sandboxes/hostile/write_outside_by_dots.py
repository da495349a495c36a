"""Climbs out of the workspace."""

import os

for depth in range(1, 12):
    try:
        open("../" * depth + "climbed", "w").write("x")
    except OSError:
        continue
    real = os.path.realpath("../" * depth + "climbed")
    if not real.startswith("/tmp/"):
        print("ESCAPED", real)
