"""Runs a program on a virtual screen inside a sandbox and takes a screenshot.

Run as `python -c SOURCE PICTURE SECONDS SETTLED NEEDED COMMAND…`: when the display has not changed for SETTLED
seconds, or after SECONDS, writes the screenshot to PICTURE and kills the program. Only a window that the X server
reports counts as shown, not a drawing on the root window, and a PICTURE that the program wrote is removed. Exits with 0
if the program showed something or succeeded, with its own code if it failed, with 1 if it never showed anything. A
program for which a window is optional has no time limit until it shows something; with an empty PICTURE it simply runs
to its end.
"""

import hashlib
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib

_POLL_SECONDS = 0.05
_SIZE = "1024x768x24"


class XvfbDisplay:
    """The X server Xvfb, which keeps its display in a file."""

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
            raise OSError("Xvfb does not start here")
        self.display = f":{number}"

    def picture(self) -> bytes:
        with open(self.file, "rb") as file:
            return file.read()

    def has_window(self) -> bool:
        """Whether the server reports a window that can be seen."""
        address = f"/tmp/.X11-unix/X{self.display[1:]}"  # noqa: S108  # where every X server listens
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(5)
                connection.connect(address if os.path.exists(address) else f"\0{address}")
                return any(is_seen(connection, one) for one in windows(connection))
        except (OSError, struct.error):
            return False


def receive(connection: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size and (piece := connection.recv(size - len(content))):
        content += piece
    return content


def ask(connection: socket.socket, request: int, window: int) -> bytes:
    """The answer to a request of the X protocol that is about one window."""
    connection.sendall(struct.pack("<BxHI", request, 2, window))
    answer = receive(connection, 32)
    if answer[:1] != b"\1":
        raise OSError("the server of windows refuses to answer")
    return answer + receive(connection, 4 * struct.unpack("<I", answer[4:8])[0])


def windows(connection: socket.socket) -> "list[int]":
    """The windows on the screen's background (QueryTree)."""
    connection.sendall(struct.pack("<BxHHHHxx", ord("l"), 11, 0, 0, 0))
    head = receive(connection, 8)
    if head[:1] != b"\1":
        raise OSError("the server of windows lets nobody in")
    setup = receive(connection, 4 * struct.unpack("<H", head[6:8])[0])
    vendor = struct.unpack("<H", setup[16:18])[0]
    start = 32 + (vendor + 3) // 4 * 4 + 8 * setup[21]
    tree = ask(connection, 15, struct.unpack("<I", setup[start : start + 4])[0])
    count = struct.unpack("<H", tree[16:18])[0]
    return list(struct.unpack(f"<{count}I", tree[32 : 32 + 4 * count]))


def is_seen(connection: socket.socket, window: int) -> bool:
    """It is mapped (GetWindowAttributes), and larger than a dot (GetGeometry)."""
    attributes, geometry = ask(connection, 3, window), ask(connection, 14, window)
    width, height = struct.unpack("<HH", geometry[16:20])
    return attributes[26] == 2 and struct.unpack("<H", attributes[12:14])[0] == 1 and width > 1 and height > 1


def png(dump: bytes) -> bytes:
    """Convert an XWD dump to PNG."""
    fields = struct.unpack(">25I", dump[:100])
    header_size, width, height, stride, colours = fields[0], fields[4], fields[5], fields[12], fields[19]
    start = header_size + 12 * colours
    channel_offsets = (1, 2, 3) if fields[7] else (2, 1, 0)
    lines: list[bytes] = []
    for line in range(height):
        row = dump[start + line * stride : start + line * stride + 4 * width]
        pixels = bytearray(3 * width)
        for channel, offset in enumerate(channel_offsets):
            pixels[channel::3] = row[offset::4]
        lines.append(b"\0" + bytes(pixels))
    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", size), (b"IDAT", zlib.compress(b"".join(lines), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )


def watch(
    screen: XvfbDisplay, program: "subprocess.Popen[bytes]", seconds: float, settled: float, needed: bool
) -> tuple[bytes, bool]:
    """The last non-empty display before the end, and whether there was one."""
    empty = last = screen.picture()
    shown, last_digest = last, hashlib.sha256(last).digest()
    end, since = time.monotonic() + seconds, time.monotonic()
    while program.poll() is None and (time.monotonic() < end or (shown == empty and not needed)):
        time.sleep(_POLL_SECONDS)
        last = screen.picture()
        digest = hashlib.sha256(last).digest()
        if digest != last_digest:
            last_digest, since = digest, time.monotonic()
        if last != empty and screen.has_window():
            shown = last
            if time.monotonic() - since > settled:
                break
    return shown, shown != empty


def shell_code(code: int) -> int:
    return 128 - code if code < 0 else code


def main() -> int:
    picture, seconds, settled, needed, *command = sys.argv[1:]
    try:
        screen = XvfbDisplay(tempfile.mkdtemp())
    except OSError as error:
        sys.stderr.write(f"no screen in this sandbox: {error}\n" if needed == "needed" else "")
        return 1 if needed == "needed" else shell_code(subprocess.call(command, close_fds=False))
    variables = {**os.environ, "DISPLAY": screen.display}
    program = subprocess.Popen(
        command, env=variables, close_fds=False
    )  # test runs report over an inherited one
    if not picture:
        return shell_code(program.wait())
    shown, was_shown = watch(screen, program, float(seconds), float(settled), needed == "needed")
    code = program.poll()
    program.kill()
    program.wait()
    screen.process.kill()
    if os.path.lexists(picture):  # whoever wrote it, it is not the screenshot
        os.unlink(picture)
    if was_shown:
        with open(picture, "wb") as file:
            file.write(png(shown))
    if code is None and not was_shown:
        sys.stderr.write(f"nothing was shown within {seconds} s\n")
        return 1
    return shell_code(code) if code is not None else 0


if __name__ == "__main__":
    sys.exit(main())
