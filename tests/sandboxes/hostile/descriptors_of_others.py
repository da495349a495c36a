"""Opens what other processes hold open besides the three streams that it has itself."""

import glob
import os

for name in glob.glob("/proc/[0-9]*/fd/*") + glob.glob("/proc/[0-9]*/map_files/*"):
    if f"/{os.getpid()}/" in name or name.endswith(("fd/0", "fd/1", "fd/2")):
        continue
    try:
        os.open(name, os.O_RDWR)
        print("ESCAPED", name)
    except OSError:
        pass
