"""Ends while a child keeps its output open."""

import subprocess

subprocess.Popen(["sleep", "600"], start_new_session=True)
