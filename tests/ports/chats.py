"""Courses that chats take in the contract suites."""

from collections.abc import Sequence
from itertools import count

from septet.domain.events import ChatStarted, Event, PersonSpoke, Recorded, TurnOpened
from septet.domain.teams import RoleSpec, TeamSpec
from septet.ports import EventStore

STARTED = ChatStarted(
    goal="draw a clock — in ünïcode ✓",
    team=TeamSpec(name="pair", members=(RoleSpec(name="coder", role="coder"),)),
    workspace="somewhere",
)
NAMES = count()


def fresh() -> str:
    """A chat that no test has used."""
    return f"chat-{next(NAMES)}"


def turn(speaker: object) -> TurnOpened:
    return TurnOpened(speaker=str(speaker))


def spoke(text: object) -> PersonSpoke:
    return PersonSpoke(text=str(text))


def events(log: Sequence[Recorded]) -> list[Event]:
    return [recorded.event for recorded in log]


async def begin(store: EventStore, chat: str) -> int:
    return (await store.append(chat, STARTED, after=0))[-1].seq


async def conduct(store: EventStore, chat: str, after: int, number: int) -> int:
    """Append that many turns one after the other."""
    for speaker in range(number):
        after = (await store.append(chat, turn(speaker), after))[-1].seq
    return after
