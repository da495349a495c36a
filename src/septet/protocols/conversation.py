"""A chat as turns of two speakers, for clients that know only a user and an assistant.

The assistant's turn is everything from the person's message to the team's next question or the end of the chat.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence

import anyio

from septet.agents.ask import Live
from septet.chat.names import CHAT_NAME
from septet.chat.progress import event_line
from septet.chat.results import awaited_question, ending_text, is_delivered, report_table, result_of
from septet.common.values import Value
from septet.domain.approvals import accepts, approves
from septet.domain.events import PersonSpoke, PlanApproved, PlanProposed, Recorded, WorkAccepted
from septet.domain.messages import Usage
from septet.domain.reduce import fold, reduce
from septet.domain.state import State
from septet.errors import BadUsage
from septet.team.questions import CONTINUE_WORDS, Question
from septet.ways.endings import ending
from septet.wiring.chat_runner import ChatService, Item

KEEP_ALIVE_SECONDS = 15.0
"""Seconds of silence after which a follower sends something, so that no proxy closes the connection."""
HINTS = {
    "plan": "Approve this plan? Answer yes, or say what to change.",
    "step": "Answer yes, `continue` to be asked no more, or `stop`.",
    "review": "Answer `accept`, or say what to change.",
    "packages": "Answer yes, `always` or no.",
    "ask": "",
}
MARKER = re.compile(rf"`chat ({CHAT_NAME.pattern}) · (\d{{1,12}})`")
Emit = Callable[["Piece"], Awaitable[None]]


class Piece(Value):
    """A part of the assistant's turn: `text` of it, or what a member writes now (`live`); both empty: still at work."""

    text: str = ""
    live: str = ""


class Position(Value):
    """What a client has seen of a chat: its log up to `seq`."""

    chat: str
    seq: int

    @property
    def marker(self) -> str:
        return f"`chat {self.chat} · {self.seq}`"


def position_in(text: str) -> Position | None:
    """The position that the last marker in an assistant's message names."""
    found = MARKER.findall(text)
    return Position(chat=found[-1][0], seq=int(found[-1][1])) if found else None


class TurnText:
    """Turns the events of a chat into the text of the assistant's turn, a paragraph for each thing that happens."""

    def __init__(self, state: State) -> None:
        self.state = state

    def add(self, recorded: Recorded) -> str:
        before, self.state = self.state.plan.current, reduce(self.state, recorded)
        event = recorded.event
        if isinstance(event, PersonSpoke | PlanApproved | WorkAccepted):
            return ""
        if isinstance(event, PlanProposed) and self.state.team.approve != "auto":
            return ""  # the question after it shows the plan
        who, text = event_line(before, self.state, event)
        return f"{self._title(who)}{paragraph(text)}\n\n" if text.strip() else ""

    def closing(self, writer: str = "") -> str:
        """What the turn ends with: the question, or how the chat ended; and the position, for the next message."""
        position = Position(chat=self.state.chat, seq=self.state.seq)
        said = question_text(awaited_question(self.state)) or outcome_text(self.state, writer)
        return f"{said}\n\n{position.marker}"

    def _title(self, who: str) -> str:
        titles = {member.name: member.title for member in self.state.team.members}
        name = titles.get(who) or who
        return f"**{name}** " if name else ""


def paragraph(text: str) -> str:
    """One line as it is; what has more lines keeps them, as a block."""
    first, _, rest = text.strip().partition("\n")
    return f"{first}\n```\n{rest.replace('```', '` ` `')}\n```" if rest.strip() else first


def question_text(asked: Question | None) -> str:
    return "\n\n".join(part for part in (asked.text, HINTS[asked.kind]) if part) if asked else ""


def outcome_text(state: State, writer: str = "") -> str:
    """How the chat ended, and where the program is; `writer` is the client's own means to write it there."""
    ended = ending(state)
    if ended is None:
        return "The chat is paused: say anything to go on."
    table = report_table(state)
    block = f"\n\n```\n{table}\n```\n\n{place_text(state, writer)}" if table else ""
    return f"{ending_text(state, ended)}{block}"


def place_text(state: State, writer: str) -> str:
    if state.base is None or is_delivered(state):
        return f"The program is in {state.workspace}"
    return f"The program is not in {state.workspace} yet: {writer or f'`septet deliver {state.chat}`'} writes it."


def checks_text(checked: State) -> str:
    """What the checks of a rehearsal say, a line each: how its chat ended is another matter."""
    return "\n".join(
        f"{'✓' if line.met else '✗'} {line.item} {line.requirement}: {line.evidence or 'not met'}"
        for line in result_of(checked).evidence
    )


def turn_text(log: Sequence[Recorded], start: int, end: int) -> str:
    """The text of the turn that began at `start`, as it was streamed."""
    text = TurnText(fold([recorded for recorded in log if recorded.seq <= start]))
    parts = [text.add(recorded) for recorded in log if start < recorded.seq <= end]
    return "".join([*parts, text.closing()])


def turn_end(log: Sequence[Recorded], start: int) -> int:
    """Where the turn that began at `start` ended: at the team's next question, else with the log."""
    state = fold([recorded for recorded in log if recorded.seq <= start])
    for recorded in log:
        if recorded.seq <= start:
            continue
        if awaited_question(state) is not None:
            break
        state = reduce(state, recorded)
    return state.seq


class Turn(Value):
    """An assistant's turn: the state at which it begins, and what the client is told before anything else."""

    start: State
    note: str = ""


async def play_turn(service: ChatService, turn: Turn, emit: Emit) -> State:
    """Let the team work until it asks or ends, and emit the turn piece by piece; returns the state at its end."""
    text = TurnText(turn.start)
    if turn.note:
        await emit(Piece(text=turn.note))
    async with service.follow(turn.start) as items:
        while True:
            item: Item | None = None
            with anyio.move_on_after(KEEP_ALIVE_SECONDS) as silence:
                item = await anext(items, None)
            if item is None and not silence.cancelled_caught:
                break
            piece = piece_of(text, item)
            if piece is not None:
                await emit(piece)
    await emit(Piece(text=text.closing()))
    return text.state


def piece_of(text: TurnText, item: Item | None) -> Piece | None:
    """None for what a client is not told."""
    if item is None:
        return Piece()
    if isinstance(item, Live):
        return Piece(live=item.text) if item.text else None
    return Piece(text=line) if (line := text.add(item)) else None


def usage_between(before: State, after: State) -> Usage:
    old, new = before.spending.total.usage, after.spending.total.usage
    return Usage(
        prompt=new.prompt - old.prompt,
        cached=new.cached - old.cached,
        completion=new.completion - old.completion,
    )


class Message(Value):
    """What a client says: words, and where they belong. `again` means that the client repeats a request."""

    text: str
    chat: str = ""
    seen: int | None = None
    """The last sequence number that the client has seen; None: it has seen everything."""
    again: bool = False


def is_for_open_question(seen: State, now: State) -> bool:
    """Whether the question that is open now is the one that the client has seen."""
    return awaited_question(seen) == awaited_question(now) and turns(seen) == turns(now)


def turns(state: State) -> int:
    return state.floor.turn_counts.get(state.team.person, 0)


def is_agreement(text: str) -> bool:
    """Whether the words only say yes: out of their place they would agree to something else."""
    return approves(text) or accepts(text) or text.strip().lower() in CONTINUE_WORDS


UNSEEN = "The chat has gone on in the meantime: your message was not taken as an answer to this question.\n\n"


async def take_message(service: ChatService, message: Message) -> Turn:
    """Store what the client says in a chat that exists.

    A repeated request is stored once, and gets the same turn again. Words that answer a question which is answered
    already are no answer to the next one, which the client has not seen.
    """
    log = await service.session.log(message.chat) if CHAT_NAME.fullmatch(message.chat) else []
    if not log:
        raise BadUsage(f"there is no chat '{message.chat[:80]}'", "leave it out to start one")
    now = fold(log)
    seen = now if message.seen is None else fold(one for one in log if one.seq <= message.seen)
    has_moved = not is_for_open_question(seen, now)
    if (message.again and now.seq > seen.seq) or (has_moved and is_agreement(message.text)):
        return Turn(start=after_answer(log, seen))
    if has_moved and awaited_question(now) is not None:
        return Turn(start=now, note=UNSEEN)
    await service.say(now, message.text)
    return Turn(start=await after_message(service, now))


async def after_message(service: ChatService, before: State) -> State:
    """The state right after the person's words; by now the team may have gone on."""
    return after_answer(await service.session.store.read(before.chat, before.seq), before)


def after_answer(log: Iterable[Recorded], state: State) -> State:
    """The first state after `state` that waits for no answer."""
    for recorded in log:
        if recorded.seq > state.seq and awaited_question(state) is not None:
            state = reduce(state, recorded)
    return state
