"""Leaves folders that not even their owner may enter."""

import os

os.makedirs("locked/inner")
open("locked/file", "w").write("x")
os.chmod("locked", 0)
os.chmod(".", 0o500)
