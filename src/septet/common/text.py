"""Text for people and terminals: plurals, lists of names, output without escape sequences, tokens of any text."""

import codecs
import re
from collections.abc import Sequence
from functools import lru_cache


def pluralize(number: int, one: str, many: str = "") -> str:
    """The number with its noun; `many` is for nouns that do more than take an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def join_words(names: Sequence[str], last: str = "and") -> str:
    """The names as a sentence has them."""
    *others, final = names or [""]
    return f"{', '.join(others)} {last} {final}" if others else final


def format_size(size: int) -> str:
    """Bytes as people say them."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size / 1e3:.1f} kB"


def cut_middle(text: str, limit: int, note: str = "\n… {} left out …\n") -> str:
    """A third of the room for the head and the rest for the tail, because errors stand at the end; the note says how
    many characters are left out."""
    if len(text) <= limit:
        return text
    head = limit // 3
    return text[:head] + note.format(pluralize(len(text) - limit, "character")) + text[head - limit :]


_KEPT = frozenset("\n\t")
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # control sequences: move, clear, scroll
    r"|[\x1b](?:[\]PX^_])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"  # strings: titles, clipboards, links
    r"|\x1b[ -/]*[0-~]?"  # short escapes
    r"|\x9b[0-?]*[ -/]*[@-~]?"  # control sequences begun with one character
    r"|[\x90\x98\x9d-\x9f][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"
)
_BEGUN = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c\n]*\x1b?|[ -/]*)$|[\x9b\x90\x98\x9d-\x9f][^\x07\x1b\x9c\n@-~]*$|\r$"
)
_LONGEST = 4096
_REORDERING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"


def printable(text: str) -> str:
    """The text without escape sequences; other control characters become visible signs.

    A carriage return before a line's end is dropped and any other starts a new line, as a log would show it.
    Characters that reorder what is read (bidirectional controls) are shown as their code.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(map(_printable_character, _SEQUENCE.sub("", lines)))


class TerminalDecoder:
    """Foreign bytes as they come: what may be the beginning of a sequence waits for the rest of it."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._waiting = ""

    def decode(self, piece: bytes) -> str:
        text = self._waiting + self._decode(piece)
        begun = _BEGUN.search(text)
        cut = begun.start() if begun and len(text) - begun.start() < _LONGEST else len(text)
        self._waiting = text[cut:]
        return printable(text[:cut])

    def flush(self) -> str:
        """What is left when nothing more comes."""
        return printable(self._waiting + self._decode(b"", final=True))


def _printable_character(character: str) -> str:
    if character in _KEPT or (character >= " " and character != "\x7f" and not "\x80" <= character <= "\x9f"):
        return f"<U+{ord(character):04X}>" if character in _REORDERING else character
    if character < " ":
        return chr(0x2400 + ord(character))
    return "\u2421" if character == "\x7f" else f"<U+{ord(character):04X}>"


@lru_cache(maxsize=4096)
def encode_token(text: str) -> str:
    """Letters, digits, _ and - stay; every other byte is written as =XX, and nothing at all as =."""
    return re.sub(rb"[^A-Za-z0-9_-]", lambda found: b"=%02X" % ord(found[0]), text.encode()).decode() or "="


@lru_cache(maxsize=4096)
def decode_token(encoded: str) -> str:
    """The text back from its token."""
    if encoded == "=":
        return ""
    return re.sub(rb"=([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), encoded.encode()).decode()
