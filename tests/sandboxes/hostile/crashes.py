"""Crashes and leaves no core file."""

# exit code: 134
import os

os.abort()
