"""A chat's log together with the state that it adds up to."""

from collections.abc import Callable, Sequence
from typing import Self

from septet.domain.events import Event, Recorded
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.ports import EventStore

Hear = Callable[[Recorded], None]


class Log:
    """Recording is the only way forward: an event is stored, then folded."""

    def __init__(self, store: EventStore, state: State) -> None:
        self.store = store
        self.state = state

    @classmethod
    async def open(cls, store: EventStore, chat: str) -> Self:
        return cls(store, fold(await store.read(chat), State(chat=chat)))

    async def record(self, event: Event) -> Sequence[Recorded]:
        """Store the event after all that we know; what the person said meanwhile comes before it."""
        news = await self.store.append(self.state.chat, event, self.state.seq)
        self.state = fold(news, self.state)
        return news

    async def move(self, decide: Callable[[State], Event], last: Event | None = None) -> Sequence[Recorded]:
        """Store what follows from all that is known; with an event that has not been stored yet: both or neither."""
        if last is None:
            return await self.record(decide(self.state))
        known = ahead = self.state

        def then(news: Sequence[Recorded]) -> Event:
            nonlocal ahead
            ahead = fold(news, known)
            return decide(ahead)

        news = await self.store.append(known.chat, last, known.seq, then)
        self.state = fold(news[-1:], ahead)
        return news

    def follow(self, *recorded: Recorded) -> None:
        """Events that another machine has stored."""
        self.state = fold(recorded, self.state)
