"""Who talks with whom: one thread for each pair, folded from the log, so that it lives as long as the chat."""

from collections.abc import Iterator

import msgspec

from septet.domain.events import ModelAnswered, PersonSpoke, ToolAnswered, ToolCalled
from septet.domain.state import State
from septet.domain.talk import Message
from septet.domain.values import Value

SEND = "SendMessage"
PERSON = ""
"""The thread of whoever talks with the person."""


class Sending(Value):
    """The arguments of a SendMessage call."""

    recipient: str
    message: str


def sending(call: ToolCalled) -> Sending | None:
    """What a call sends to whom; None for other tools and for calls that nobody can read."""
    if call.name != SEND:
        return None
    try:
        return msgspec.json.decode(call.arguments, type=Sending)
    except msgspec.MsgspecError:
        return None


def open_sends(state: State) -> list[tuple[ToolCalled, Sending]]:
    """Messages that wait for an answer, the oldest first: a busy recipient takes them one by one."""
    return [(call, sent) for call in state.waiting if (sent := sending(call)) is not None]


def served(state: State, name: str) -> ToolCalled | None:
    """The message that a member is working on."""
    return next((call for call, sent in open_sends(state) if sent.recipient == name), None)


def next_recipient(state: State) -> str | None:
    """The member whose answer can come now: it waits for nobody itself."""
    waiting = {call.by for call, _ in open_sends(state)}
    return next((sent.recipient for _, sent in open_sends(state) if sent.recipient not in waiting), None)


def waits_for(state: State, name: str) -> set[str]:
    """Everybody who waits, directly or through others, for that member."""
    found: set[str] = set()
    pending = [name]
    while pending:
        now = pending.pop()
        new = {call.by for call, sent in open_sends(state) if sent.recipient == now} - found
        found |= new
        pending += new
    return found


class Thread:
    """Folds the chat's messages into exchanges; each belongs to the message that was being worked on."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.open: dict[str, ToolCalled] = {}
        self.calls: dict[str, tuple[str, str]] = {}
        self.exchanges: dict[str, list[Message]] = {PERSON: []}
        self.senders: dict[str, str] = {PERSON: PERSON}

    def current(self) -> str:
        """The id of the message that the member works on now."""
        ids = (
            call.id for call in self.open.values() if (sent := sending(call)) and sent.recipient == self.name
        )
        return next(ids, PERSON)

    def hear(self, said: ModelAnswered | PersonSpoke | ToolCalled | ToolAnswered) -> None:
        match said:
            case PersonSpoke(text=text):
                self.exchanges[PERSON].append(Message(role="user", text=text))
            case ModelAnswered(role=role, answer=answer) if role == self.name:
                message = Message(role="assistant", text=answer.text, calls=answer.calls)
                self.exchanges[self.current()].append(message)
            case ToolCalled():
                self.called(said)
            case ToolAnswered(id=call, text=text):
                self.open.pop(call, None)
                if call in self.calls:
                    exchange, provider = self.calls[call]
                    self.exchanges[exchange].append(Message(role="tool", text=text, call=provider))
            case _:
                return

    def called(self, call: ToolCalled) -> None:
        sent = sending(call)
        if sent is not None:
            self.open[call.id] = call
        if sent is not None and sent.recipient == self.name:
            self.exchanges[call.id] = [Message(role="user", text=sent.message)]
            self.senders[call.id] = call.by
        if call.by == self.name:
            self.calls[call.id] = (self.current(), call.call)


def conversation(state: State, name: str) -> tuple[Message, ...]:
    """All that a member and its partner of now have said to each other, and what its tools answered."""
    thread = Thread(name)
    for said in state.messages:
        if isinstance(said, ModelAnswered | PersonSpoke | ToolCalled | ToolAnswered):
            thread.hear(said)
    now = served(state, name)
    partner = now.by if now else PERSON
    first = (Message(role="user", text=state.goal),) if now is None else ()
    return (*first, *spoken(thread, partner, now.id if now else ""))


def spoken(thread: Thread, partner: str, now: str) -> Iterator[Message]:
    """The exchanges with one partner, up to the one of now: later messages wait for their turn."""
    for call, messages in thread.exchanges.items():
        if thread.senders[call] == partner:
            yield from messages
        if call and call == now:
            return
