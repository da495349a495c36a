"""Runs a program with a screen of its own inside a sandbox and leaves a picture of it.

Run as `python -c SOURCE PICTURE SECONDS SETTLED NEEDED COMMAND…`: when what is on the screen has stayed the same for
the settled time, or after the seconds, the picture is written and the program is ended. Ends with 0 if the program was
showing something or had ended well, with the program's own code if it had failed, with 1 if nothing was ever shown.
A program that need not show anything may take its time until it does; without a name for the picture it is left alone.
"""

import hashlib
import os
import struct
import subprocess
import sys
import tempfile
import time
import zlib

_LOOK = 0.05
_SIZE = "1024x768x24"


class Screen:
    """A server of windows without a monitor: its picture is a file that it keeps in memory."""

    def __init__(self, folder: str) -> None:
        reading, writing = os.pipe()
        server = [
            "Xvfb",
            "-displayfd",
            str(writing),
            "-screen",
            "0",
            _SIZE,
            "-fbdir",
            folder,
            "-nolisten",
            "tcp",
        ]
        self.file = f"{folder}/Xvfb_screen0"
        self.process = subprocess.Popen([*server, "-noreset"], pass_fds=(writing,), stderr=subprocess.DEVNULL)
        os.close(writing)
        with os.fdopen(reading) as ready:
            number = ready.readline().strip()
        if not number or not os.path.exists(self.file):
            raise OSError("the server of windows does not start here")
        self.display = f":{number}"

    def picture(self) -> bytes:
        with open(self.file, "rb") as file:
            return file.read()


def png(dump: bytes) -> bytes:
    """The X server's own format as PNG."""
    fields = struct.unpack(">25I", dump[:100])
    head, width, height, stride, colours = fields[0], fields[4], fields[5], fields[12], fields[19]
    start = head + 12 * colours
    places = (1, 2, 3) if fields[7] else (2, 1, 0)
    lines: list[bytes] = []
    for line in range(height):
        row = dump[start + line * stride : start + line * stride + 4 * width]
        pixels = bytearray(3 * width)
        for channel, place in enumerate(places):
            pixels[channel::3] = row[place::4]
        lines.append(b"\0" + bytes(pixels))
    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", size), (b"IDAT", zlib.compress(b"".join(lines), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )


def watch(
    screen: Screen, program: "subprocess.Popen[bytes]", seconds: float, settled: float, needed: bool
) -> tuple[bytes, bool]:
    """The last picture before the end, and whether it ever was another one than the empty screen."""
    empty = last = screen.picture()
    shown, seen = last, hashlib.sha256(last).digest()
    end, since = time.monotonic() + seconds, time.monotonic()
    while program.poll() is None and (time.monotonic() < end or (shown == empty and not needed)):
        time.sleep(_LOOK)
        last = screen.picture()
        digest = hashlib.sha256(last).digest()
        if digest != seen:
            seen, since = digest, time.monotonic()
        if last != empty:
            shown = last
            if time.monotonic() - since > settled:
                break
    return shown, shown != empty


def shell_code(code: int) -> int:
    return 128 - code if code < 0 else code


def main() -> int:
    picture, seconds, settled, needed, *command = sys.argv[1:]
    try:
        screen = Screen(tempfile.mkdtemp())
    except OSError as error:
        sys.stderr.write(f"no screen in this sandbox: {error}\n" if needed == "needed" else "")
        return 1 if needed == "needed" else shell_code(subprocess.call(command, close_fds=False))
    variables = {**os.environ, "DISPLAY": screen.display}
    program = subprocess.Popen(command, env=variables, close_fds=False)  # a test run reports over one of them
    if not picture:
        return shell_code(program.wait())
    shown, anything = watch(screen, program, float(seconds), float(settled), needed == "needed")
    if anything:
        with open(picture, "wb") as file:
            file.write(png(shown))
    code = program.poll()
    program.kill()
    program.wait()
    screen.process.kill()
    if code is None and not anything:
        sys.stderr.write(f"nothing was shown within {seconds} s\n")
        return 1
    return shell_code(code) if code is not None else 0


if __name__ == "__main__":
    sys.exit(main())
