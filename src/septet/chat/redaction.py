"""What should not be given away is taken out of texts: keys and tokens, e-mail addresses, home paths.

It goes by what such things look like, and by the secrets that are known. It cannot know every secret.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from septet.common.secrets import BEGINS, TOKENS
from septet.domain.codec import decode_event, encode_event, kind_of
from septet.domain.events import Recorded

KEY, MAIL, HOME = "[redacted key]", "[redacted e-mail]", "~"
KINDS = {
    KEY: ("key", "keys"),
    MAIL: ("e-mail address", "e-mail addresses"),
    HOME: ("home path", "home paths"),
}
SHORTEST_SECRET = 6
STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
STRINGS = msgspec.json.Decoder(str)
SHAPES = "|".join(
    [
        r"(?:sk|rk|pk|gsk|xai|nvapi|glpat|pypi|dop_v1|hf|npm|sq0[a-z]{3})[-_](?=[A-Za-z_-]{0,80}\d)[A-Za-z0-9_-]{16,}",
        *TOKENS,
    ]
)
NAME = (
    r"(?:api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|secret|token|passw(?:or)?d|credential)s?"
)
SAYS = r"[\"'\\]{0,2}\s{0,3}[:=]\s{0,3}"
BARE = r"[A-Za-z0-9+/_.=-]"
ENDS = r"[A-Z0-9 ]{0,40}PRIVATE KEY-----"
HEADERS = r"(?:(?:\s|\\[nrt]){0,4}[A-Za-z-]{1,30}: [^\n\\]{0,100}){0,4}"
PRIVATE = rf"-----BEGIN {ENDS}{HEADERS}(?:[A-Za-z0-9+/=\s]|\\[nrt])*(?:-----END {ENDS})?"
PATTERNS = [
    (PRIVATE, KEY),
    (r"(?<=://)[^\s/:@\"'\\]{0,100}:[^\s/@\"'\\]{1,200}(?=@)", KEY),
    (
        rf"(?i:(authorization{SAYS}[\"'\\]{{0,2}}(?:(?:basic|bearer|token)\s{{1,3}})?))[\w.~+/=-]{{8,}}",
        rf"\1{KEY}",
    ),
    (r"\b(?i:(bearer\s{1,3}))[\w.~+/=-]{16,}", rf"\1{KEY}"),
    (rf"{BEGINS}(?:{SHAPES})", KEY),
    (rf"(?i:({NAME}{SAYS}\\?[\"']))(?!\[redacted)[^\"'\\\s]{{8,200}}(?=\\?[\"'])", rf"\1{KEY}"),
    (
        rf"(?i:({NAME}{SAYS}))(?={BARE}{{0,200}}\d)(?={BARE}{{0,200}}[A-Za-z]){BARE}{{16,200}}(?![\w(\[.+/=-])",
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
    """Takes secrets out and counts them."""

    def __init__(self, secrets: Iterable[str] = (), home: str = "") -> None:
        known = sorted({one for one in secrets if len(one) >= SHORTEST_SECRET}, key=len, reverse=True)
        own = [(rf"(?<![\w.-]){re.escape(home.rstrip('/'))}(?![\w.-])", HOME)] if len(home) > 1 else []
        literal = [("|".join(map(re.escape, known)), KEY)] if known else []
        self._steps = [(re.compile(pattern), instead) for pattern, instead in (*literal, *own, *PATTERNS)]
        self.found: Counter[str] = Counter()
        self.unread: list[str] = []
        """Files that are no text."""

    def text(self, text: str) -> str:
        for pattern, instead in self._steps:
            text, count = pattern.subn(instead, text)
            self.found[instead.removeprefix(r"\1")] += count
        return text

    def log(self, log: Sequence[Recorded]) -> list[Recorded]:
        """The same log with every text in it redacted; it can still be read as one."""
        return [self._redact_recorded(one) for one in log]

    def content(self, path: str, content: bytes) -> bytes:
        """A file's content; what is no text stays as it is, and is named."""
        try:
            return self.text(content.decode()).encode()
        except UnicodeDecodeError:
            self.unread.append(path)
            return content

    def _redact_recorded(self, recorded: Recorded) -> Recorded:
        data = STRING.sub(self._string, encode_event(recorded.event))
        return replace(recorded, event=decode_event(kind_of(recorded.event), data))

    def _string(self, found: re.Match[bytes]) -> bytes:
        text = STRINGS.decode(found[0])
        clean = self.text(text)
        return found[0] if clean == text else msgspec.json.encode(clean)

    @property
    def account(self) -> str:
        """How many of what, in words."""
        kinds = [(self.found[instead], *words) for instead, words in KINDS.items() if self.found[instead]]
        total = sum(count for count, _, _ in kinds)
        parts = ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in kinds)
        unread = f"; not looked into, for it is no text: {', '.join(self.unread)}" if self.unread else ""
        return f"{total} redacted" + (f" ({parts})" if parts else "") + unread
