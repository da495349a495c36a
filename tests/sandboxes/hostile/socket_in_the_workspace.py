"""Leaves a socket where a file is expected."""

import socket

socket.socket(socket.AF_UNIX).bind("report.txt")
