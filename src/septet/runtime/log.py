"""A chat's log together with the state that it adds up to."""

from collections.abc import Callable
from typing import Self

from septet.domain.events import Event, Recorded
from septet.domain.reduce import fold, reduce
from septet.domain.state import State
from septet.ports import EventStore

Hear = Callable[[Recorded], None]


class Log:
    """Recording is the only way forward: an event is stored, folded and told, in that order."""

    def __init__(self, store: EventStore, state: State, hear: Hear) -> None:
        self.store = store
        self.state = state
        self.hear = hear

    @classmethod
    async def open(cls, store: EventStore, chat: str, hear: Hear) -> Self:
        return cls(store, fold(await store.read(chat), State(chat=chat)), hear)

    async def record(self, event: Event) -> None:
        """Store the event after all that we know; what the person said meanwhile is folded in first."""
        for recorded in await self.store.append(self.state.chat, event, after=self.state.seq):
            self.state = reduce(self.state, recorded)
            self.hear(recorded)
