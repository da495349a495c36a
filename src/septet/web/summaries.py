"""Chats as the page lists them: folded once, brought up to date by what is new in their logs."""

from septet.agents.person import question
from septet.chat.names import GOOD
from septet.chat.results import status
from septet.common.values import Value
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.errors import LogDamaged
from septet.ports import ChatHead, EventStore
from septet.ways.endings import ending
from septet.web.requests import NotHere

LONGEST_GOAL = 300


class Summary(Value, omit_defaults=False):
    """A chat in the list. `phase` is what its mark shows: going, waiting, or how it ended."""

    chat: str
    goal: str
    phase: str
    status: str
    seq: int
    started: float
    changed: float
    versions: int
    met: int
    items: int


class Shelf:
    """What the chats add up to. A chat that has ended is kept as its summary only."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._states: dict[str, State] = {}
        self._summaries: dict[str, Summary] = {}

    async def state(self, chat: str) -> State:
        """The newest state of a chat that exists."""
        if not GOOD.fullmatch(chat):
            raise NotHere(f"there is no chat '{chat[:80]}'")
        before = self._states.get(chat) or State(chat=chat)
        state = fold(await self._store.read(chat, before.seq), before)
        if state.seq == 0:
            raise NotHere(f"there is no chat '{chat}'", "see the list")
        self._states[chat] = state
        return state

    async def head(self, chat: str) -> ChatHead:
        """A chat that exists, without reading its log."""
        found = next((head for head in await self._store.chats() if head.chat == chat), None)
        if found is None:
            raise NotHere(f"there is no chat '{chat[:80]}'", "see the list")
        return found

    async def summaries(self) -> list[Summary]:
        """All chats, the one that moved last first."""
        heads = [head for head in await self._store.chats() if GOOD.fullmatch(head.chat)]
        return [one for head in heads if (one := await self._shown(head)) is not None]

    async def _shown(self, head: ChatHead) -> Summary | None:
        """A damaged chat is told to be so; what somebody wrote where no chat was ever started is none."""
        try:
            found = await self.summary(head)
        except LogDamaged as error:
            return damaged(head, error)
        return found if found.goal else None

    async def summary(self, head: ChatHead) -> Summary:
        known = self._summaries.get(head.chat)
        if known is None or known.seq < head.seq:
            state = await self.state(head.chat)
            known = self._summaries[head.chat] = summarised(head, state)
            if state.ended is not None:
                del self._states[head.chat]
        return known


def summarised(head: ChatHead, state: State) -> Summary:
    return Summary(
        chat=head.chat,
        goal=" ".join(state.goal.split())[:LONGEST_GOAL],
        phase=phase(state),
        status=status(state),
        seq=state.seq,
        started=head.started,
        changed=head.changed,
        versions=len(state.versions),
        met=sum(found.passed for found in state.evidence.values()),
        items=len(state.plan.items) if state.plan else 0,
    )


def damaged(head: ChatHead, error: LogDamaged) -> Summary:
    return Summary(
        chat=head.chat,
        goal=head.chat,
        phase="damaged",
        status=error.cause,
        seq=head.seq,
        started=head.started,
        changed=head.changed,
        versions=0,
        met=0,
        items=0,
    )


def phase(state: State) -> str:
    if (ended := ending(state)) is not None:
        return ended.reason
    waits = state.turn is not None and state.turn.speaker == "proxy" and question(state) is not None
    return "waiting" if waits else "going"
