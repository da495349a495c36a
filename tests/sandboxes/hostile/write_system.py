"""Writes into every folder of the system."""

import os

for folder in (
    "/",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/local/bin",
    "/etc",
    "/bin",
    "/lib",
    "/var",
    "/opt",
    "/root",
    "/home",
    "/run",
    "/boot",
    "/srv",
    "/dev",
    "/sys",
    "/proc",
):
    try:
        open(folder + "/septet-was-here", "w")
        print("ESCAPED", folder)
    except OSError:
        pass
    try:
        os.mkdir(folder + "/septet-was-there")
        print("ESCAPED", folder)
    except OSError:
        pass
