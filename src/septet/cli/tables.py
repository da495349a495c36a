"""The lists of chats and of a chat's points, for people and for programs."""

from collections.abc import Sequence
from datetime import datetime

from septet.chat.points import points
from septet.chat.reports import clipped, status
from septet.chat.results import result_of
from septet.domain.codec import ENCODER
from septet.domain.events import Recorded
from septet.domain.state import State
from septet.ports import ChatHead


def chat_lines(chats: list[tuple[ChatHead, State]]) -> str:
    """Name, when it last moved, where it stands, what it is about."""
    width = max((len(head.chat) for head, _ in chats), default=0)
    return "\n".join(
        f"{head.chat:<{width}}  {moment(head.changed)}  {clipped(status(state), 40):<40}  "
        f"{clipped(' '.join(state.goal.split()), 50)}"
        for head, state in chats
    )


def chat_objects(chats: list[tuple[ChatHead, State]]) -> str:
    return "\n".join(ENCODER.encode(chat_object(head, state)).decode() for head, state in chats)


def chat_object(head: ChatHead, state: State) -> dict[str, object]:
    result = result_of(state)
    return {
        "chat": result.chat,
        "status": result.status,
        "goal": state.goal,
        "versions": result.versions,
        "workspace": result.workspace,
        "changed": head.changed,
    }


def point_lines(log: Sequence[Recorded]) -> str:
    """Name, when it came about, how many files, what it is."""
    return "\n".join(
        f"{point.point:<5}  {moment(point.at)}  {point.files:>4} files  {clipped(point.note, 70)}"
        for point in points(log)
    )


def point_objects(log: Sequence[Recorded]) -> str:
    return "\n".join(ENCODER.encode(point).decode() for point in points(log))


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
