"""What lists of chats show of each: computed from its log, and kept until the chat changes."""

import sqlite3
from collections import OrderedDict
from collections.abc import Sequence
from typing import Literal

import msgspec

from septet.chat.index_file import IndexFile
from septet.chat.names import chat_title
from septet.common.values import Value
from septet.domain.state import State
from septet.domain.teams import EndReason
from septet.errors import LogDamaged
from septet.ports import ChatHead, EventStore

CACHED_STATES = 200
CHUNK = 500
"""Names in one query."""
Phase = Literal["going", "waiting", "damaged", EndReason]
"""At work, waiting for the person, unreadable, or how it ended."""


class Summary(Value, omit_defaults=False):
    """A chat in a list; its icon shows the `phase`. `reason` and `detail` are those of its result."""

    chat: str
    goal: str
    phase: Phase
    status: str
    seq: int
    started: float
    changed: float
    versions: int
    met: int
    items: int
    reason: str = ""
    detail: str = ""
    workspace: str = ""
    title: str = ""
    """The goal in a few words."""


DECODER = msgspec.json.Decoder(Summary)


class Summaries:
    """Summaries of the chats of a store; `index` keeps them for other processes."""

    def __init__(self, store: EventStore, index: IndexFile | None = None) -> None:
        self._store = store
        self._index = index or IndexFile()
        self._states: OrderedDict[str, State] = OrderedDict()
        self._known: dict[str, Summary] = {}

    async def state(self, chat: str) -> State:
        """The newest state; those that were wanted last are kept, so that only new events are read."""
        from septet.domain.reduce import fold

        before = self._states.get(chat) or State(chat=chat)
        state = self._states[chat] = fold(await self._store.read(chat, before.seq), before)
        self._states.move_to_end(chat)
        if len(self._states) > CACHED_STATES:
            self._states.popitem(last=False)
        return state

    async def newest(self, most: int = 0) -> list[Summary]:
        """The chats that changed last, most recently first: all, or at most so many.

        A chat whose log cannot be read is listed as damaged; one without a beginning is left out.
        """
        heads = await self._store.chats(most)
        wanted = [head for head in heads if not self._is_known(head)]
        if wanted:
            kept = await self._index.use(lambda index: kept_summaries(index, [head.chat for head in wanted]))
            self._known.update(kept)
            if missing := [head for head in wanted if not self._is_known(head)]:
                await self._add(missing)
        if len(self._known) > len(heads):  # of chats that are deleted or no longer among the newest
            self._known = {head.chat: self._known[head.chat] for head in heads}
        return [self._known[head.chat] for head in heads if self._known[head.chat].goal]

    def _is_known(self, head: ChatHead) -> bool:
        known = self._known.get(head.chat)
        return known is not None and (known.seq, known.started) == (head.seq, head.started)

    async def _add(self, heads: Sequence[ChatHead]) -> None:
        made = [await self._summarise(head) for head in heads]
        self._known.update({summary.chat: summary for summary in made})
        rows = [(one.chat, msgspec.json.encode(one)) for one in made if one.phase != "damaged"]
        insert = "INSERT OR REPLACE INTO summaries VALUES (?, ?)"
        await self._index.use(lambda index: index.executemany(insert, rows))

    async def _summarise(self, head: ChatHead) -> Summary:
        try:
            state = await self.state(head.chat)
        except LogDamaged as error:
            return damaged_summary(head, error)
        if state.ended is not None:
            del self._states[head.chat]
        return summarise(head, state)


def kept_summaries(index: sqlite3.Connection, chats: Sequence[str]) -> dict[str, Summary]:
    found: dict[str, Summary] = {}
    for start in range(0, len(chats), CHUNK):
        names = chats[start : start + CHUNK]
        query = f"SELECT chat, data FROM summaries WHERE chat IN ({', '.join('?' * len(names))})"  # noqa: S608  # marks
        found |= {chat: DECODER.decode(data) for chat, data in index.execute(query, names)}
    return found


def summarise(head: ChatHead, state: State) -> Summary:
    from septet.chat.results import result_of, status  # a list whose summaries are kept does without all this

    result = result_of(state)
    planned = result.evidence[: len(state.plan.items)]  # wishes follow
    return Summary(
        chat=head.chat,
        goal=state.goal,
        phase=phase(state),
        status=status(state),
        seq=head.seq,
        started=head.started,
        changed=head.changed,
        versions=result.versions,
        met=sum(line.met for line in planned),
        items=len(planned),
        reason=result.status,
        detail=result.detail,
        workspace=result.workspace,
        title=chat_title(state.goal),
    )


def damaged_summary(head: ChatHead, error: LogDamaged) -> Summary:
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
        reason="damaged",
        detail=error.cause,
    )


def phase(state: State) -> Phase:
    from septet.chat.results import open_question
    from septet.ways.endings import ending

    if (ended := ending(state)) is not None:
        return ended.reason
    return "waiting" if open_question(state) is not None else "going"
