"""How chats and events become subjects of NATS: any name is one token, and a token is one name."""

import re

from septet.domain.codec import actor, kind_of
from septet.domain.events import Event

STREAM = "SEPTET_LOG"
LOG = "septet.log"
STORED = "septet.stored"
"""Where the server tells, without contents, that something has been stored."""
FENCED, SPOKEN = "t", "ev"
"""The branch of a chat that conductors write to, and the one for the words of the person."""


def token(name: str) -> str:
    """Dots, blanks, wildcards and everything beyond ASCII are written as =XX; nothing at all as =."""
    return re.sub(rb"[^A-Za-z0-9_-]", lambda found: b"=%02X" % ord(found[0]), name.encode()).decode() or "="


def name_of(encoded: str) -> str:
    """The name back from its token."""
    if encoded == "=":
        return ""
    return re.sub(rb"=([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), encoded.encode()).decode()


def whole_chat(chat: str) -> str:
    return f"{LOG}.{token(chat)}.>"


def subject_of(chat: str, event: Event, fenced: bool) -> str:
    """`septet.log.CHAT.t.turn_opened.coder`: what a member may write or must hear can be told by it."""
    return f"{LOG}.{token(chat)}.{FENCED if fenced else SPOKEN}.{kind_of(event)}.{token(actor(event))}"


def chat_of(subject: str) -> str:
    return name_of(subject.split(".")[2])


def is_fenced(subject: str) -> bool:
    return subject.split(".")[3] == FENCED
