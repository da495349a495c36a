"""Unpacking what a server has compressed, a little at a time: a small answer may hide gigabytes."""

import zlib
from collections.abc import Iterator

from septet.models.faults import Garbled

PIECE = 1 << 16
WAYS = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""Window sizes as zlib counts them; the last finds out by itself."""


class Inflation:
    def __init__(self, encoding: str) -> None:
        if encoding not in WAYS:
            raise Garbled(f"the answer is packed in a way that was not asked for ({encoding[:40]})")
        self._way = WAYS[encoding]
        self._inflater = zlib.decompressobj(self._way)

    def unpacked(self, data: bytes) -> Iterator[bytes]:
        """The content in pieces of at most PIECE bytes. Raises Garbled where it is none."""
        while data:
            try:
                if piece := self._inflater.decompress(data, PIECE):
                    yield piece
            except zlib.error as error:
                raise Garbled(f"the answer cannot be unpacked ({error})") from error
            data = self._inflater.unconsumed_tail
            if self._inflater.eof:  # what follows is a further part, packed by itself
                data = self._inflater.unused_data
                self._inflater = zlib.decompressobj(self._way)
