"""Whether bytes are a picture: PNG is read to its last chunk, other kinds are known by their head."""

import struct
import zlib
from collections.abc import Iterator
from itertools import pairwise

from septet.common.values import Value

PNG = b"\x89PNG\r\n\x1a\n"
HEADS = {b"\xff\xd8\xff": "JPEG", b"GIF8": "GIF", b"BM": "BMP", b"<svg": "SVG", b"<?xml": "SVG"}
LARGEST = 256 << 20
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


class Picture(Value):
    """What was recognised: `kind` in words, or the `trouble` why it shows nothing."""

    kind: str = ""
    error: str = ""


def recognise(content: bytes) -> Picture:
    """Whether this is a picture that shows something."""
    if content.startswith(PNG):
        return recognise_png(content)
    start = content.lstrip()
    kind = next((name for head, name in HEADS.items() if start.startswith(head)), "")
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        kind = "WebP"
    if not kind:
        return Picture(error="it is not a picture" if content else "it is empty")
    whole = b"</svg>" in content if kind == "SVG" else len(content) > 100
    return Picture(kind=kind) if whole else Picture(error="the picture is cut short")


def recognise_png(content: bytes) -> Picture:
    try:
        chunks = list(png_chunks(content))
        if chunks[0][0] != b"IHDR" or chunks[-1][0] != b"IEND":
            return Picture(error="the picture is cut short")
        width, height, depth, colour = struct.unpack(">IIBB", chunks[0][1][:10])
        lines = inflate(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    except (ValueError, IndexError, zlib.error, struct.error):
        return Picture(error="the picture is damaged")
    channels = CHANNELS.get(colour, 1)
    stride = 1 + (width * channels * depth + 7) // 8
    if not width or not height or len(lines) < stride * height:
        return Picture(error="the picture is cut short")
    if is_blank(lines[: stride * height], stride, max(1, channels * depth // 8)):
        return Picture(error="the picture is blank")
    return Picture(kind=f"{width}×{height} PNG")


def inflate(packed: bytes) -> bytes:
    """A few kilobytes can unpack to gigabytes: more than a large picture is not unpacked."""
    lines = zlib.decompressobj().decompress(packed, LARGEST)
    if len(lines) == LARGEST:
        raise ValueError("too large")
    return lines


def png_chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
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


def is_blank(lines: bytes, stride: int, pixel: int) -> bool:
    """All pixels are alike: rows repeat one pixel, or differ by nothing from what stands before them."""
    rows = [lines[start : start + stride] for start in range(0, len(lines), stride)]
    first = rows[0][1:]
    plain = first == first[:pixel] * (len(first) // pixel) if rows[0][0] == 0 else not any(first[pixel:])
    return plain and all(row[1:] == before[1:] or not any(row[1 + pixel :]) for before, row in pairwise(rows))
