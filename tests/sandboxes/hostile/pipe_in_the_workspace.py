"""Leaves a pipe on which a careless reader would wait for ever."""

import os

os.mkfifo("report.txt")
os.mkfifo("pipe")
