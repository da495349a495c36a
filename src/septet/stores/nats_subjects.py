"""How chats and events become subjects of NATS."""

from collections.abc import Sequence

from septet.domain.codec import actor, kind_of
from septet.domain.events import Event
from septet.domain.tokens import text_of, token

STREAM = "SEPTET_LOG"
LOG = "septet.log"
STORED = "septet.stored"
"""Where the server tells what has been stored."""
FENCED, SPOKEN = "t", "ev"
"""The branch of a chat that conductors write to, and the one for the words of the person."""


def whole_chat(chat: str) -> str:
    return f"{LOG}.{token(chat)}.>"


def subject_of(chat: str, events: Sequence[Event], fenced: bool) -> str:
    """What a member may write or must hear can be told by it: `septet.log.CHAT.t.turn_opened.coder`.

    Of two events the last comes first, `….t.turn_opened.coder.review_given.reviewer`: it says whose turn it is.
    """
    branch = FENCED if fenced else SPOKEN
    told = [f"{kind_of(event)}.{token(actor(event))}" for event in reversed(events)]
    return f"{LOG}.{token(chat)}.{branch}.{'.'.join(told)}"


def chat_of(subject: str) -> str:
    return text_of(subject.split(".")[2])


def is_ours(subject: str) -> bool:
    """Whether it names a chat as we do: a member may store under names that stand for none, or for another one."""
    name = subject.split(".")[2]
    try:
        return token(text_of(name)) == name
    except UnicodeDecodeError:
        return False


def is_fenced(subject: str) -> bool:
    return subject.split(".")[3] == FENCED
