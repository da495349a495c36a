"""Pictures are looked at, not believed."""

import io
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.common.pictures import recognise


def png(width: int, height: int, pixels: bytes) -> bytes:
    """An RGB picture from its rows, with plain filters."""
    stride = width * 3
    raw = b"".join(b"\0" + pixels[row * stride : (row + 1) * stride] for row in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
    parts = [
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


SQUARE = png(2, 2, bytes(range(12)))


def test_a_picture_is_recognised_with_its_size() -> None:
    assert recognise(SQUARE).kind == "2×2 PNG"


@pytest.mark.parametrize(
    ("content", "trouble"),
    [
        (b"", "empty"),
        (b"hello", "not a picture"),
        (SQUARE[:-20], "damaged"),
        (SQUARE[:30] + b"\xff" + SQUARE[31:], "damaged"),
        (png(3, 3, b"\x07\x07\x07" * 9), "blank"),
        (b"<svg xmlns='x'><rect/>", "damaged"),
        (b"GIF89a", "damaged"),
        (b"GIF89a" + b"x" * 200, "damaged"),
        (b"\xff\xd8\xff" + b"x" * 200, "damaged"),
        (b"BM" + b"x" * 20, "damaged"),
        (b"RIFF\x10\0\0\0WEBP" + b"x" * 12, "damaged"),
        (b"<?xml version='1.0'?><html><rect/></html>", "not a picture"),
        (b"<svg xmlns='x'></svg>", "blank"),
    ],
)
def test_what_shows_nothing_is_named(content: bytes, trouble: str) -> None:
    assert trouble in recognise(content).error


def test_an_svg_is_a_picture() -> None:
    assert recognise(b"<?xml version='1.0'?><svg><rect width='9'/></svg>").kind == "SVG"


def drawn(colours: int, kind: str) -> bytes:
    """A picture of that kind by matplotlib's own library, in so many colours."""
    image = pytest.importorskip("PIL.Image")
    picture = image.new("RGB", (40, 30), (200, 30, 30))
    for number in range(colours - 1):
        picture.paste((0, 40 * number % 255, 255), (number * 3, 2, number * 3 + 3, 20))
    file = io.BytesIO()
    picture.save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize(
    ("kind", "named"), [("GIF", "40×30 GIF"), ("JPEG", "40×30 JPEG"), ("BMP", "40×30 BMP")]
)
def test_pictures_of_other_kinds_are_recognised_with_their_size_and_blank_ones_are_not(
    kind: str, named: str
) -> None:
    assert recognise(drawn(12, kind)).kind == named
    assert recognise(drawn(1, kind)).error == "the picture is blank"
    assert recognise(drawn(12, kind)[:-200]).error


@given(st.binary())
def test_any_bytes_get_an_answer(content: bytes) -> None:
    for candidate in (content, SQUARE[:8] + content, SQUARE[:33] + content):
        found = recognise(candidate)
        assert bool(found.kind) != bool(found.error)
