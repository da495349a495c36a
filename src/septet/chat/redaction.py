"""Removes keys and tokens, e-mail addresses and home paths from texts.

It finds them by their form, and by the values of known secrets. It cannot find every secret.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from septet.common.secrets import TOKENS, WORD_START
from septet.domain.codec import decode_event, encode_event, kind_of
from septet.domain.events import Recorded

KEY, MAIL, HOME = "[redacted key]", "[redacted e-mail]", "~"
KINDS = {
    KEY: ("key", "keys"),
    MAIL: ("e-mail address", "e-mail addresses"),
    HOME: ("home path", "home paths"),
}
MIN_SECRET_LENGTH = 6
"""Shorter values would match ordinary words."""
JSON_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
STRING_DECODER = msgspec.json.Decoder(str)
TOKEN_SHAPES = "|".join(
    [
        r"(?:sk|rk|pk|gsk|xai|nvapi|glpat|pypi|dop_v1|hf|npm|sq0[a-z]{3})[-_](?=[A-Za-z_-]{0,80}\d)[A-Za-z0-9_-]{16,}",
        *TOKENS,
    ]
)
SENSITIVE_NAME = (
    r"(?:api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|secret|token|passw(?:or)?d|credential)s?"
)
"""Names of variables and settings that hold a secret."""
ASSIGNMENT = r"[\"'\\]{0,2}\s{0,3}[:=]\s{0,3}"
"""What is between such a name and its value: `=` or `:`, perhaps after a closing quote."""
UNQUOTED_CHARACTER = r"[A-Za-z0-9+/_.=-]"
"""A character of a secret that is not in quotes."""
PEM_LABEL = r"[A-Z0-9 ]{0,40}PRIVATE KEY-----"
"""The rest of a `-----BEGIN …` or `-----END …` line of a private key."""
PEM_HEADERS = r"(?:(?:\s|\\[nrt]){0,4}[A-Za-z-]{1,30}: [^\n\\]{0,100}){0,4}"
PRIVATE_KEY = rf"-----BEGIN {PEM_LABEL}{PEM_HEADERS}(?:[A-Za-z0-9+/=\s]|\\[nrt])*(?:-----END {PEM_LABEL})?"
PATTERNS = [
    (PRIVATE_KEY, KEY),
    (r"(?<=://)[^\s/:@\"'\\]{0,100}:[^\s/@\"'\\]{1,200}(?=@)", KEY),
    (
        rf"(?i:(authorization{ASSIGNMENT}[\"'\\]{{0,2}}(?:(?:basic|bearer|token)\s{{1,3}})?))[\w.~+/=-]{{8,}}",
        rf"\1{KEY}",
    ),
    (r"\b(?i:(bearer\s{1,3}))[\w.~+/=-]{16,}", rf"\1{KEY}"),
    (rf"{WORD_START}(?:{TOKEN_SHAPES})", KEY),
    (
        rf"(?i:({SENSITIVE_NAME}{ASSIGNMENT}\\?[\"']))(?!\[redacted)[^\"'\\\s]{{8,200}}(?=\\?[\"'])",
        rf"\1{KEY}",
    ),
    (
        (
            rf"(?i:({SENSITIVE_NAME}{ASSIGNMENT}))(?={UNQUOTED_CHARACTER}{{0,200}}\d)"
            rf"(?={UNQUOTED_CHARACTER}{{0,200}}[A-Za-z])"
            rf"{UNQUOTED_CHARACTER}{{16,200}}(?![\w(\[.+/=-])"
        ),
        rf"\1{KEY}",
    ),
    (
        r"(?:(?<![\w.+-])|(?<=\\[nrt]))[\w.+-]{1,256}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b",
        MAIL,
    ),
    (r"(?:(?<![\w.~-])|(?<=\\[nrt]))(?:/home/|/Users/)[\w.-]{1,64}", HOME),
    (r"(?:(?<![\w./~-])|(?<=\\[nrt]))/root(?![\w.-])", HOME),
    (r"\b[A-Za-z]:\\{1,4}Users\\{1,4}[\w.-]{1,64}", HOME),
]


class Redaction:
    """Replaces secrets by placeholders and counts them."""

    def __init__(self, secrets: Iterable[str] = (), home: str = "") -> None:
        known = sorted(
            {secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH}, key=len, reverse=True
        )
        own = [(rf"(?<![\w.-]){re.escape(home.rstrip('/'))}(?![\w.-])", HOME)] if len(home) > 1 else []
        literal = [("|".join(map(re.escape, known)), KEY)] if known else []
        self._steps = [(re.compile(pattern), instead) for pattern, instead in (*literal, *own, *PATTERNS)]
        self.found: Counter[str] = Counter()
        self.binary_files: list[str] = []
        """Files that were not scanned."""

    def redact_text(self, text: str) -> str:
        for pattern, instead in self._steps:
            text, count = pattern.subn(instead, text)
            self.found[instead.removeprefix(r"\1")] += count
        return text

    def redact_log(self, log: Sequence[Recorded]) -> list[Recorded]:
        """Return the log with every string in it redacted; it stays a valid log."""
        return [self._redact_recorded(recorded) for recorded in log]

    def redact_content(self, path: str, content: bytes) -> bytes:
        """Return a file's content, redacted if it is text. Binary content stays as it is; the summary names it."""
        try:
            return self.redact_text(content.decode()).encode()
        except UnicodeDecodeError:
            self.binary_files.append(path)
            return content

    def _redact_recorded(self, recorded: Recorded) -> Recorded:
        data = JSON_STRING.sub(self._redact_string, encode_event(recorded.event))
        return replace(recorded, event=decode_event(kind_of(recorded.event), data))

    def _redact_string(self, match: re.Match[bytes]) -> bytes:
        text = STRING_DECODER.decode(match[0])
        clean = self.redact_text(text)
        return match[0] if clean == text else msgspec.json.encode(clean)

    @property
    def summary(self) -> str:
        """How many secrets of each kind were redacted, as text."""
        kinds = [(self.found[instead], *nouns) for instead, nouns in KINDS.items() if self.found[instead]]
        total = sum(count for count, _, _ in kinds)
        parts = ", ".join(
            f"{count} {singular if count == 1 else plural}" for count, singular, plural in kinds
        )
        binary = f"; not scanned (binary): {', '.join(self.binary_files)}" if self.binary_files else ""
        return f"{total} redacted" + (f" ({parts})" if parts else "") + binary
