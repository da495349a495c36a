"""Taking a turn on this machine: the log as it is, and the one loop, until the floor is somebody else's."""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Protocol

from nats.aio.msg import Msg

from septet.buses.member import Call, Perform
from septet.domain.events import Recorded
from septet.domain.state import State
from septet.ports import EventStore
from septet.runtime.conductor import Agents, perform
from septet.runtime.log import Log
from septet.team.moves import Floor

Cast = Callable[[State], tuple[Floor, Agents]]
"""The chat's policy, and those of its members who are served here."""

RECALLED = 4000
"""Chats that are remembered; of others the whole log is read again."""


class SharedLog(EventStore, Protocol):
    async def read_to(self, chat: str, after: int, told: Msg) -> Sequence[Recorded]:
        """At least the events after `after` up to the one that the server has told."""
        ...


class Recall:
    """Chats as this member last saw them: only what has happened since is read. Logs never change behind it."""

    def __init__(self, store: SharedLog) -> None:
        self._store = store
        self._known: dict[str, Log] = {}

    async def log(self, call: Call) -> Log:
        log = self._known.pop(call.chat, None) or Log(self._store, State(chat=call.chat))
        after = log.state.seq
        if call.told is None:
            log.follow(*await self._store.read(call.chat, after))
        elif after < call.opened:
            log.follow(*await self._store.read_to(call.chat, after, call.told))
        return log

    def keep(self, log: Log) -> None:
        self._known[log.state.chat] = log
        if len(self._known) > RECALLED:
            del self._known[next(iter(self._known))]


def taking(store: SharedLog, cast: Cast) -> Perform:
    """Go on with the chat, if it still is that turn."""
    recall = Recall(store)

    async def take(call: Call) -> None:
        log = await recall.log(call)
        if log.state.turn is not None and log.state.turn.opened == call.opened:
            floor, agents = cast(log.state)
            async with aclosing(perform(log, floor, agents)) as performance:
                async for _ in performance:
                    pass
        recall.keep(log)

    return take
