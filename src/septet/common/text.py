"""Text for people and terminals: plurals, lists of names, output without escape sequences, diffs; and safe tokens."""

import codecs
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import takewhile
from typing import Literal


def pluralize(number: int, one: str, many: str = "") -> str:
    """The number with its noun; `many` is an irregular plural."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def join_words(names: Sequence[str], last: str = "and") -> str:
    """The names as in a sentence: `a, b and c`."""
    *others, final = names or [""]
    return f"{', '.join(others)} {last} {final}" if others else final


def format_size(size: int) -> str:
    """A number of bytes in GB, MB or kB."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size / 1e3:.1f} kB"


def cut_middle(text: str, limit: int, note: str = "\n… {} left out …\n") -> str:
    """Keep a third of `limit` from the start and the rest from the end, where errors are; the note says how much is
    left out."""
    if len(text) <= limit:
        return text
    head = limit // 3
    return text[:head] + note.format(pluralize(len(text) - limit, "character")) + text[head - limit :]


_ALLOWED_CONTROLS = frozenset("\n\t")
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # control sequences: move, clear, scroll
    r"|[\x1b](?:[\]PX^_])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"  # strings: titles, clipboards, links
    r"|\x1b[ -/]*[0-~]?"  # short escapes
    r"|\x9b[0-?]*[ -/]*[@-~]?"  # control sequences begun with one character
    r"|[\x90\x98\x9d-\x9f][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"
)
_INCOMPLETE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c\n]*\x1b?|[ -/]*)$|[\x9b\x90\x98\x9d-\x9f][^\x07\x1b\x9c\n@-~]*$|\r$"
)
_PLAIN = re.compile(r"[ -~\n\t]*")
_MAX_SEQUENCE = 4096
_REORDERING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"


def printable(text: str) -> str:
    """The text without escape sequences; other control characters become visible symbols.

    A carriage return before a line feed is dropped, and any other starts a new line.
    Characters that reorder what is read (bidirectional controls) are shown as their code.
    """
    if _PLAIN.fullmatch(text):
        return text
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(map(_printable_character, _SEQUENCE.sub("", lines)))


class TerminalDecoder:
    """Decodes a program's output piece by piece: an incomplete escape sequence waits for its rest."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._pending = ""

    def decode(self, piece: bytes) -> str:
        text = self._pending + self._decode(piece)
        incomplete = _INCOMPLETE.search(text)
        end = (
            incomplete.start() if incomplete and len(text) - incomplete.start() < _MAX_SEQUENCE else len(text)
        )
        self._pending = text[end:]
        return printable(text[:end])

    def flush(self) -> str:
        """The rest, at the end of the output."""
        return printable(self._pending + self._decode(b"", final=True))


def _printable_character(character: str) -> str:
    if character in _ALLOWED_CONTROLS or (
        character >= " " and character != "\x7f" and not "\x80" <= character <= "\x9f"
    ):
        return f"<U+{ord(character):04X}>" if character in _REORDERING else character
    if character < " ":
        return chr(0x2400 + ord(character))
    return "\u2421" if character == "\x7f" else f"<U+{ord(character):04X}>"


@lru_cache(maxsize=4096)
def encode_token(text: str) -> str:
    """Encode any text for subjects and file names: letters, digits, _ and - stay, other bytes become =XX."""
    return re.sub(rb"[^A-Za-z0-9_-]", lambda match: b"=%02X" % ord(match[0]), text.encode()).decode() or "="


@lru_cache(maxsize=4096)
def decode_token(encoded: str) -> str:
    """Decode a token."""
    if encoded == "=":
        return ""
    return re.sub(rb"=([0-9A-F]{2})", lambda match: bytes([int(match[1], 16)]), encoded.encode()).decode()


EXACT_LINES = 4_000
"""A part of a file with more lines is compared faster, and its diff may be larger than needed."""


def unified_diff(before: Sequence[str], after: Sequence[str], left: str, right: str) -> Iterator[str]:
    """As difflib's, but frequent lines are compared too: without them, a diff of a long file shows too much."""
    head = [f"--- {left}\n", f"+++ {right}\n"]
    for group in Comparison(before, after).get_grouped_opcodes() if before != after else ():
        yield from head
        head = []
        (_, first, _, start, _), (_, _, last, _, end) = group[0], group[-1]
        yield f"@@ -{line_range(first, last)} +{line_range(start, end)} @@\n"
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[a:b])
                continue
            yield from (f"-{line}" for line in before[a:b])
            yield from (f"+{line}" for line in after[c:d])


OpCode = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]


class Comparison(SequenceMatcher[str]):
    """Two texts, line by line; equal beginnings and ends need no comparison."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        super().__init__(None, [], [])
        self.codes = changed_ranges(before, after)

    def get_opcodes(self) -> list[OpCode]:
        return self.codes


def changed_ranges(before: Sequence[str], after: Sequence[str]) -> list[OpCode]:
    start = common_start(before, after)
    end = common_start(before[start:][::-1], after[start:][::-1])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    fast = max(len(old), len(new)) > EXACT_LINES
    inner = SequenceMatcher(None, old, new, autojunk=fast).get_opcodes()
    codes: list[OpCode] = [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in inner]
    if start:
        codes.insert(0, ("equal", 0, start, 0, start))
    if end:
        codes.append(("equal", len(before) - end, len(before), len(after) - end, len(after)))
    return codes


def common_start(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines are equal at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def line_range(start: int, end: int) -> str:
    """As the heads of hunks have it: an empty range begins at the line before it."""
    length = end - start
    return f"{start + 1}" if length == 1 else f"{start + 1 if length else start},{length}"


def clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
