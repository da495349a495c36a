"""Ends by the strongest signal without anybody's limit."""

# exit code: 137
import os

os.kill(os.getpid(), 9)
