"""Whether bytes are a picture: PNG is read to its last chunk, other kinds are known by their head."""

import struct
import zlib
from itertools import pairwise

PNG = b"\x89PNG\r\n\x1a\n"
HEADS = (b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM", b"<svg", b"<?xml")
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def picture_trouble(content: bytes) -> str:
    """Why this is not a picture that shows something; empty when it is one."""
    if content.startswith(PNG):
        return png_trouble(content)
    webp = content[:4] == b"RIFF" and content[8:12] == b"WEBP"
    if webp or content.lstrip().startswith(HEADS):
        return "" if len(content) > 100 else "the picture is cut short"
    return "it is not a picture" if content else "it is empty"


def png_trouble(content: bytes) -> str:
    try:
        chunks = list(png_chunks(content))
        kinds = [kind for kind, _ in chunks]
        if kinds[0] != b"IHDR" or kinds[-1] != b"IEND":
            return "the picture is cut short"
        width, height, depth, colour = struct.unpack(">IIBB", chunks[0][1][:10])
        lines = zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    except (ValueError, IndexError, zlib.error, struct.error):
        return "the picture is damaged"
    stride = 1 + (width * CHANNELS.get(colour, 1) * depth + 7) // 8
    if not width or not height or len(lines) < stride * height:
        return "the picture is cut short"
    return (
        "the picture is blank" if blank(lines, stride, max(1, CHANNELS.get(colour, 1) * depth // 8)) else ""
    )


def png_chunks(content: bytes):
    """(kind, body) of every chunk; ValueError where one is damaged."""
    place = len(PNG)
    while place < len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        kind, body = content[place + 4 : place + 8], content[place + 8 : place + 8 + length]
        (check,) = struct.unpack(">I", content[place + 8 + length : place + 12 + length])
        if zlib.crc32(kind + body) != check:
            raise ValueError("checksum")
        yield kind, body
        place += 12 + length


def blank(lines: bytes, stride: int, pixel: int) -> bool:
    """All pixels are alike: rows repeat one pixel, or differ by nothing from what stands before them."""
    rows = [lines[start : start + stride] for start in range(0, len(lines), stride)]
    first = rows[0][1:]
    plain = first == first[:pixel] * (len(first) // pixel) if rows[0][0] == 0 else not any(first[pixel:])
    return plain and all(row[1:] == before[1:] or not any(row[1 + pixel :]) for before, row in pairwise(rows))
