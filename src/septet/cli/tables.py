"""Formats lists of chats and of a chat's points, for people and for programs."""

from collections.abc import Sequence
from datetime import datetime
from shutil import get_terminal_size
from typing import NamedTuple, TextIO

from septet.chat.names import chat_title
from septet.chat.summaries import Summary
from septet.common.text import clip, pluralize
from septet.domain.codec import ENCODER
from septet.domain.events import Recorded
from septet.ports import RemoteChat

MIN_WIDTH_WITH_DATE = 90
"""On narrower terminals the date is left out, so that status and goal are visible."""
MIN_STATUS_WIDTH = 12


class ChatRow(NamedTuple):
    """A chat in a list. `server` is where its log is, empty for this machine; `status_text` is for people."""

    chat: str
    status: str
    detail: str
    goal: str
    versions: int
    workspace: str
    changed: float
    status_text: str
    server: str = ""


def row_of(summary: Summary) -> ChatRow:
    return ChatRow(
        chat=summary.chat,
        status=summary.reason,
        detail=summary.detail,
        goal=summary.goal,
        versions=summary.versions,
        workspace=summary.workspace,
        changed=summary.changed,
        status_text=summary.status,
    )


def remote_row(note: RemoteChat) -> ChatRow:
    return ChatRow(
        chat=note.chat,
        status=note.ending,
        detail=note.status,
        goal=note.goal,
        versions=note.versions,
        workspace=note.workspace,
        changed=note.changed,
        status_text=note.status,
        server=note.server,
    )


def chat_lines(rows: Sequence[ChatRow], width: int = 0) -> str:
    """Return a line for each chat: name, last change, status and goal; for a terminal, unless its width is 0.

    A terminal gets the status in short and a title, so that both are seen; a program gets them whole.
    """
    longest = max((len(row.chat) for row in rows), default=0)
    has_date = not width or width >= MIN_WIDTH_WITH_DATE
    most = max(MIN_STATUS_WIDTH, min(40, (width - longest - (22 if has_date else 4)) // 2))
    statuses = [clip(row.status_text.partition("; ")[0], most) if width else row.status_text for row in rows]
    column = max(map(len, statuses), default=0) if width else 40
    lines: list[str] = []
    for row, status in zip(rows, statuses, strict=True):
        when = f"{local_time(row.changed)}  " if has_date else ""
        where = f"(on {row.server}) " if row.server else ""
        goal = where + (chat_title(row.goal) if width else clip(" ".join(row.goal.split()), 50))
        line = f"{row.chat:<{longest}}  {when}{status:<{column}}  {goal}"
        lines.append(clip(line, width) if width else line)
    return "\n".join(lines)


def columns_of(stream: TextIO) -> int:
    """Return the width of the terminal; 0 if the stream is not a terminal."""
    return get_terminal_size().columns if stream.isatty() else 0


def chat_objects(rows: Sequence[ChatRow]) -> str:
    objects = (
        {name: value for name, value in row._asdict().items() if name != "status_text"} for row in rows
    )
    return "\n".join(ENCODER.encode(row).decode() for row in objects)


def point_lines(log: Sequence[Recorded]) -> str:
    """Return a line for each point: name, time, number of files, note."""
    from septet.chat.versions import points

    return "\n".join(
        f"{point.point:<5}  {local_time(point.at)}  {pluralize(point.files, 'file'):>10}  {clip(point.note, 70)}"
        for point in points(log)
    )


def point_objects(log: Sequence[Recorded]) -> str:
    from septet.chat.versions import points

    return "\n".join(ENCODER.encode(point).decode() for point in points(log))


def local_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
