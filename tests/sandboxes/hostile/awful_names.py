"""Names of files that are no text, control a terminal, or are as long as they may be."""

import os

for name in (b"\xff\xfe", b"line\nbreak", b"\x1b]0;owned\x07\x1b[2J", b"n" * 255, b"-rf", b"$(touch x)", "\u202egnp.exe".encode(), b" "):
    open(os.fsencode(os.getcwd()) + b"/" + name, "w").write("x")
