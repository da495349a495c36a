"""Leaves links to files without end and to itself."""

import os

for number, target in enumerate(("/dev/zero", "/dev/urandom", "/proc/self/fd/0", "link3", ".", "..", "/proc/1/root")):
    os.symlink(target, f"link{number}")
