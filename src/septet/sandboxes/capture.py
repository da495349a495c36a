"""What is kept of a stream: its beginning and its end, however much went through, as safe text."""

from collections import deque
from dataclasses import dataclass, field

_NUL_PICTURE = "\u2400"


@dataclass(slots=True)
class Capture:
    """Takes any number of bytes and holds about `keep` of them: half from the start, half from the end."""

    keep: int
    total: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: deque[bytes] = field(default_factory=deque[bytes])
    _tail_size: int = 0

    def take(self, piece: bytes) -> None:
        self.total += len(piece)
        room = self.keep - self.keep // 2 - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        if piece:
            self._remember(piece)

    def _remember(self, piece: bytes) -> None:
        self._tail.append(piece)
        self._tail_size += len(piece)
        while self._tail_size - len(self._tail[0]) >= self.keep // 2:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """The kept text, with a line that says how much is left out. Any bytes become valid text."""
        tail = b"".join(self._tail)
        tail = tail[max(0, len(tail) - self.keep // 2) :]
        left_out = self.total - len(self._head) - len(tail)
        if left_out <= 0:
            return decode(bytes(self._head) + tail)
        return (
            f"{decode(_whole_end(self._head))}\n… {left_out} bytes left out …\n{decode(_whole_start(tail))}"
        )


def decode(content: bytes) -> str:
    """Text from anything: bad UTF-8 is replaced, NULs become a visible sign."""
    return content.decode("utf-8", "replace").replace("\0", _NUL_PICTURE)


def _whole_end(content: bytes | bytearray) -> bytes:
    """Without the first bytes of a character whose rest was cut off."""
    for back in range(1, min(4, len(content)) + 1):
        byte = content[-back]
        if byte & 0xC0 != 0x80:
            needed = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return bytes(content[:-back]) if needed > back else bytes(content)
    return bytes(content)


def _whole_start(content: bytes) -> bytes:
    """Without the last bytes of a character whose start was cut off."""
    start = 0
    while start < min(3, len(content)) and content[start] & 0xC0 == 0x80:
        start += 1
    return content[start:]
