"""Moves, removes or replaces the workspace itself."""

import os

here = os.getcwd()
for action in (
    lambda: os.rename(here, here + "-moved"),
    lambda: os.rmdir(here),
    lambda: os.symlink(os.environ["OUTSIDE"], os.path.join(os.path.dirname(here), "planted")),
):
    try:
        action()
    except OSError:
        pass
