"""Reads a secret of the machine by its name."""

import os

print(open(os.environ["SECRET"]).read())
