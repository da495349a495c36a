"""How chats and events become subjects of NATS."""

from septet.domain.codec import actor, kind_of
from septet.domain.events import Event
from septet.domain.tokens import text_of, token

STREAM = "SEPTET_LOG"
LOG = "septet.log"
STORED = "septet.stored"
"""Where the server tells, without contents, that something has been stored."""
FENCED, SPOKEN = "t", "ev"
"""The branch of a chat that conductors write to, and the one for the words of the person."""


def whole_chat(chat: str) -> str:
    return f"{LOG}.{token(chat)}.>"


def subject_of(chat: str, event: Event, fenced: bool) -> str:
    """`septet.log.CHAT.t.turn_opened.coder`: what a member may write or must hear can be told by it."""
    return f"{LOG}.{token(chat)}.{FENCED if fenced else SPOKEN}.{kind_of(event)}.{token(actor(event))}"


def chat_of(subject: str) -> str:
    return text_of(subject.split(".")[2])


def is_fenced(subject: str) -> bool:
    return subject.split(".")[3] == FENCED
