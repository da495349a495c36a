"""Folders in folders, deeper than a path may be long."""

import os

for _ in range(300):
    os.mkdir("d" * 50)
    os.chdir("d" * 50)
open("bottom", "w").write("x")
