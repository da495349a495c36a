"""Writes where anybody on the machine may write."""

import os

for name in ("new", "canary"):
    try:
        open(os.path.join(os.environ["OUTSIDE"], name), "w").write("changed")
        print("ESCAPED")
    except OSError:
        pass
