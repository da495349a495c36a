"""Whether bytes are a picture: PNG is read to its last pixel, other kinds from their first part to their last."""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from xml.etree import ElementTree as ET

from septet.common.values import Value

PNG = b"\x89PNG\r\n\x1a\n"
HEADS = {b"\xff\xd8\xff": "JPEG", b"GIF8": "GIF", b"BM": "BMP", b"<svg": "SVG", b"<?xml": "SVG"}
LARGEST = 256 << 20
SHAPES = frozenset(
    {"path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "image", "use"}
)
FEWEST = 16
"""The packed pixels of a picture that shows something have more different bytes than that."""
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
    try:
        return READERS[kind](content)
    except (ValueError, IndexError, struct.error, ET.ParseError):
        return Picture(error="the picture is damaged")


def read_jpeg(content: bytes) -> Picture:
    """Every segment up to the pixels, which have to be there and to end."""
    place, size = 2, ""
    while content[place] == 0xFF and content[place + 1] != 0xDA:
        marker, length = content[place + 1], struct.unpack(">H", content[place + 2 : place + 4])[0]
        if marker in range(0xC0, 0xD0) and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", content[place + 5 : place + 9])
            size = f"{width}×{height}" if width and height else ""
        place += 2 + length
    if not size or content[place : place + 2] != b"\xff\xda":
        return Picture(error="the picture is damaged")
    start = place + 2 + struct.unpack(">H", content[place + 2 : place + 4])[0]
    pixels = content[start : content.rindex(b"\xff\xd9")]
    return (
        Picture(kind=f"{size} JPEG") if len(set(pixels)) > FEWEST else Picture(error="the picture is blank")
    )


def read_gif(content: bytes) -> Picture:
    """Every block to the trailer."""
    width, height, flags = struct.unpack("<HHB", content[6:11])
    place, colours = 13 + colour_bytes(flags), set[int]()
    while content[place] != 0x3B:
        image = content[place] == 0x2C
        if not image and content[place] != 0x21:
            raise ValueError("no block")
        place += 10 + colour_bytes(content[place + 9]) if image else 2
        depth, place = (content[place], place + 1) if image else (0, place)
        packed = bytearray()
        while size := content[place]:
            packed += content[place + 1 : place + 1 + size]
            place += 1 + size
        colours |= gif_colours(depth, bytes(packed)) if image else set()
        place += 1
    if not (width and height and colours):
        return Picture(error="the picture is damaged")
    return (
        Picture(kind=f"{width}×{height} GIF") if len(colours) > 1 else Picture(error="the picture is blank")
    )


def gif_colours(depth: int, packed: bytes) -> set[int]:
    """The first colours of an image: what is not a row of known ones stands for itself among its codes (LZW)."""
    clear = 1 << depth
    width, following, bits, room = depth + 1, clear + 1, 0, 0
    colours: set[int] = set()
    for byte in packed:
        bits, room = bits | byte << room, room + 8
        while room >= width:
            code, bits, room = bits & ((1 << width) - 1), bits >> width, room - width
            if code == clear + 1 or len(colours) > 1:
                return colours
            if code < clear:
                colours.add(code)
            following = clear + 1 if code == clear else min(following + 1, 4096)
            width = depth + 1 if code == clear else min(12, max(width, following.bit_length()))
    return colours


def colour_bytes(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def read_bmp(content: bytes) -> Picture:
    start, _, width, height = struct.unpack("<IIii", content[10:26])
    depth = struct.unpack("<H", content[28:30])[0]
    pixels = content[start:]
    if width <= 0 or not height or len(pixels) < (width * depth + 31) // 32 * 4 * abs(height):
        return Picture(error="the picture is cut short")
    unit = max(1, depth // 8)
    blank = pixels[: width * unit] == pixels[:unit] * width and len(set(pixels)) <= unit + 1
    return Picture(error="the picture is blank") if blank else Picture(kind=f"{width}×{abs(height)} BMP")


def read_webp(content: bytes) -> Picture:
    """The length that it says of itself, and a part with pixels."""
    if struct.unpack("<I", content[4:8])[0] + 8 > len(content):
        return Picture(error="the picture is cut short")
    if not any(part in content[12:64] for part in (b"VP8 ", b"VP8L", b"VP8X")):
        return Picture(error="the picture is damaged")
    return Picture(kind="WebP") if len(set(content[20:])) > FEWEST else Picture(error="the picture is blank")


def read_svg(content: bytes) -> Picture:
    """XML whose root is a drawing with something to see in it."""
    if b"<!ENTITY" in content:
        return Picture(error="the picture is damaged")
    root = ET.fromstring(content)  # noqa: S314  # without entities nothing can grow
    names = [one.tag.rpartition("}")[2] for one in root.iter()]
    if names[0] != "svg":
        return Picture(error="it is not a picture")
    return Picture(kind="SVG") if SHAPES.intersection(names) else Picture(error="the picture is blank")


READERS: Mapping[str, Callable[[bytes], Picture]] = {
    "JPEG": read_jpeg,
    "GIF": read_gif,
    "BMP": read_bmp,
    "WebP": read_webp,
    "SVG": read_svg,
}


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
