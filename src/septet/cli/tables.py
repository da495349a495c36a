"""The lists of chats and of a chat's points, for people and for programs."""

from collections.abc import Sequence
from datetime import datetime
from shutil import get_terminal_size
from typing import TextIO

from septet.chat.points import points
from septet.chat.reports import clipped, status
from septet.chat.results import result_of
from septet.domain.codec import ENCODER
from septet.domain.counts import counted
from septet.domain.events import Recorded
from septet.domain.state import State
from septet.ports import ChatHead

NARROW = 90
"""Columns: below that, what stands further back is worth more than the date."""


def chat_lines(chats: list[tuple[ChatHead, State]], width: int = 0) -> str:
    """Name, when it last moved, where it stands, what it is about; a line each on a terminal of that width."""
    longest = max((len(head.chat) for head, _ in chats), default=0)
    lines: list[str] = []
    for head, state in chats:
        when = f"{moment(head.changed)}  " if not width or width >= NARROW else ""
        goal = clipped(" ".join(state.goal.split()), 50)
        line = f"{head.chat:<{longest}}  {when}{clipped(status(state), 40):<40}  {goal}"
        lines.append(clipped(line, width) if width else line)
    return "\n".join(lines)


def columns_of(stream: TextIO) -> int:
    """How wide the person's terminal is; 0 for what is no terminal."""
    return get_terminal_size().columns if stream.isatty() else 0


def chat_objects(chats: list[tuple[ChatHead, State]]) -> str:
    return "\n".join(ENCODER.encode(chat_object(head, state)).decode() for head, state in chats)


def chat_object(head: ChatHead, state: State) -> dict[str, object]:
    result = result_of(state)
    return {
        "chat": result.chat,
        "status": result.status,
        "detail": result.detail,
        "goal": state.goal,
        "versions": result.versions,
        "workspace": result.workspace,
        "changed": head.changed,
    }


def point_lines(log: Sequence[Recorded]) -> str:
    """Name, when it came about, how many files, what it is."""
    return "\n".join(
        f"{point.point:<5}  {moment(point.at)}  {counted(point.files, 'file'):>10}  {clipped(point.note, 70)}"
        for point in points(log)
    )


def point_objects(log: Sequence[Recorded]) -> str:
    return "\n".join(ENCODER.encode(point).decode() for point in points(log))


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
