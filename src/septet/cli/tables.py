"""The list of chats, for people and for programs."""

from datetime import datetime

from septet.chat.reports import clipped, status
from septet.chat.results import result_of
from septet.domain.codec import ENCODER
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


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
