"""Any text as one plain token and back: for names that a server reads as patterns."""

import re
from functools import lru_cache


@lru_cache(maxsize=4096)
def token(text: str) -> str:
    """Letters, digits, _ and - stay; every other byte is written as =XX, and nothing at all as =."""
    return re.sub(rb"[^A-Za-z0-9_-]", lambda found: b"=%02X" % ord(found[0]), text.encode()).decode() or "="


@lru_cache(maxsize=4096)
def text_of(encoded: str) -> str:
    """The text back from its token."""
    if encoded == "=":
        return ""
    return re.sub(rb"=([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), encoded.encode()).decode()
