"""Waits for a child that never ends."""

# limits: seconds=1
# stopped by: time
import subprocess

subprocess.run(["sleep", "600"])
