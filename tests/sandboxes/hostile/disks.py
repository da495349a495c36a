"""Looks for the machine's disks."""

import os

for name in os.listdir("/dev"):
    if name.startswith(("sd", "vd", "nvme", "xvd", "loop", "dm-", "mapper", "fuse", "kvm", "net", "vhost", "input")):
        print("ESCAPED", name)
