"""The fence: one rule for every store about who may append to a chat."""

from septet.errors import Conflict


def check_fence(chat: str, last: int, fenced: int, after: int | None) -> None:
    """Let the append pass or raise Conflict.

    `last` is the newest sequence of the chat, `fenced` the newest that a conductor wrote. Words of the
    person (`after=None`) always pass and do not move `fenced`.
    """
    if after is None:
        return
    if after == 0 and fenced:
        raise Conflict(f"a chat '{chat}' exists already", "resume it, or start one with another name")
    if fenced > after:
        raise Conflict(f"another conductor has the chat '{chat}'", "resume it when that one has stopped")
    if after > last:
        raise Conflict(f"the log of '{chat}' is shorter than what was seen of it", "resume the chat")
