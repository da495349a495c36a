"""Leaves a linked folder that holds the secret."""

import os

os.symlink(os.path.dirname(os.environ["SECRET"]), "folder")
os.symlink("/", "everything")
