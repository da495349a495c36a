"""Plants code in the start of the next program."""

import os

open("evil.py", "w").write("print('here')")
for name in ("/etc/ld.so.preload", "/etc/profile.d/x.sh", os.path.expanduser("~/../../etc/environment")):
    try:
        open(name, "w")
        print("ESCAPED", name)
    except OSError:
        pass
