"""Taking a turn of a chat that is conducted elsewhere: the log as it is, the agent, and every event stored."""

from collections.abc import Callable, Sequence
from contextlib import aclosing

from septet.buses.member import Perform
from septet.buses.turns import Order
from septet.domain.codec import decode
from septet.domain.events import Recorded
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.ports import EventStore, Speaker
from septet.runtime.log import Log

Cast = Callable[[State, str], Speaker]
"""Who speaks under a name in the chat."""

RECALLED = 500


class Recall:
    """Chats as this member last saw them: only what has happened since is read. Logs never change behind it."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._known: dict[str, State] = {}

    async def log(self, order: Order) -> Log:
        """The chat as it is now; an order to one who was there until lately brings the rest along."""
        known = self._known.pop(order.chat, State(chat=order.chat))
        if known.seq == order.since:
            news: Sequence[Recorded] = [decode(bytes(line)) for line in order.news]
        else:
            news = await self._store.read(order.chat, known.seq)
        return Log(self._store, fold(news, known))

    def keep(self, state: State) -> None:
        self._known[state.chat] = state
        if len(self._known) > RECALLED:
            del self._known[next(iter(self._known))]


def taking(store: EventStore, cast: Cast) -> Perform:
    """Bring a turn to its end, every event stored before the next one is made."""
    recall = Recall(store)

    async def turn(order: Order) -> int:
        log = await recall.log(order)
        if log.state.turn is not None and log.state.turn.number == order.turn:
            async with aclosing(cast(log.state, order.speaker)(log.state)) as events:
                async for event in events:
                    await log.record(event)
        recall.keep(log.state)
        return log.state.seq

    return turn
