"""The threads of the assistant's members: one for each pair, folded from the log. Pure."""

from collections.abc import Iterator

import msgspec

from septet.common.values import Value
from septet.domain.approvals import is_question
from septet.domain.citations import Citations, References, ScriptOutput, trace_numbers
from septet.domain.events import (
    AnswerGiven,
    ModelAnswered,
    PersonSpoke,
    RunFinished,
    ToolAnswered,
    ToolCalled,
)
from septet.domain.messages import Message
from septet.domain.plans import Refusal
from septet.domain.state import State
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.team.briefing import Sources, base_sections, edited_files_section, environment_section
from septet.team.floor import End, Floor, Move, Speak, at_most

SEND = "SendMessage"
PERSON = ""
"""The thread of the member that talks with the person."""


class SentMessage(Value):
    """The arguments of a SendMessage call."""

    recipient: str
    message: str


def message_sent_by(call: ToolCalled) -> SentMessage | None:
    """Parse a SendMessage call; None for other tools and for invalid arguments."""
    if call.name != SEND:
        return None
    try:
        return msgspec.json.decode(call.arguments, type=SentMessage)
    except msgspec.MsgspecError:
        return None


def open_sends(state: State) -> list[tuple[ToolCalled, SentMessage]]:
    """Messages that wait for an answer, the oldest first: a busy recipient handles them one by one."""
    return [(call, sent) for call in state.talk.open_calls if (sent := message_sent_by(call)) is not None]


def message_in_work(state: State, name: str) -> ToolCalled | None:
    """The message that a member works on now."""
    return next((call for call, sent in open_sends(state) if sent.recipient == name), None)


def next_recipient(state: State) -> str | None:
    """The member that can answer now: it does not wait for another member."""
    waiting = {call.by for call, _ in open_sends(state)}
    return next((sent.recipient for _, sent in open_sends(state) if sent.recipient not in waiting), None)


def waits_for(state: State, name: str) -> set[str]:
    """All members that wait for that member, directly or through others."""
    found: set[str] = set()
    pending = [name]
    while pending:
        now = pending.pop()
        new = {call.by for call, sent in open_sends(state) if sent.recipient == now} - found
        found |= new
        pending += new
    return found


class Thread:
    """Folds the chat's messages into exchanges; each belongs to the message that the member worked on."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.open: dict[str, ToolCalled] = {}
        self.calls: dict[str, tuple[str, str]] = {}
        self.exchanges: dict[str, list[Message]] = {PERSON: []}
        self.senders: dict[str, str] = {PERSON: PERSON}

    def current(self) -> str:
        """The id of the message that the member works on now."""
        ids = (
            call.id
            for call in self.open.values()
            if (sent := message_sent_by(call)) and sent.recipient == self.name
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
                self.add_call(said)
            case ToolAnswered(id=call, text=text):
                self.open.pop(call, None)
                if call in self.calls:
                    exchange, provider = self.calls[call]
                    self.exchanges[exchange].append(Message(role="tool", text=text, call=provider))
            case _:
                return

    def add_call(self, call: ToolCalled) -> None:
        sent = message_sent_by(call)
        if sent is not None:
            self.open[call.id] = call
        if sent is not None and sent.recipient == self.name:
            self.exchanges[call.id] = [Message(role="user", text=sent.message)]
            self.senders[call.id] = call.by
        if call.by == self.name:
            self.calls[call.id] = (self.current(), call.call)


def member_thread(state: State, name: str) -> tuple[Message, ...]:
    """The thread of a member and its current partner: their messages, and the answers of tools."""
    thread = Thread(name)
    for said in state.talk.messages:
        if isinstance(said, ModelAnswered | PersonSpoke | ToolCalled | ToolAnswered):
            thread.hear(said)
    now = message_in_work(state, name)
    partner = now.by if now else PERSON
    first = (Message(role="user", text=state.goal),) if now is None else ()
    return (*first, *exchanges_with(thread, partner, now.id if now else ""))


def exchanges_with(thread: Thread, partner: str, now: str) -> Iterator[Message]:
    """The exchanges with one partner, up to the one of now: later messages wait for their turn."""
    for call, messages in thread.exchanges.items():
        if thread.senders[call] == partner:
            yield from messages
        if call and call == now:
            return


CERTAIN = "CERTAIN:"


def direct(state: State) -> Move:
    """The deepest open question first; the person's own is answered last, once."""
    if state.talk.answer is not None:
        return End(reason="answered")
    return Speak(speaker=next_recipient(state) or spokesperson(state.team))


def assistant_floor(team: TeamSpec, budget: Budget) -> Floor:
    return at_most(budget.rounds, direct)


def spokesperson(team: TeamSpec) -> str:
    """Who talks with the person."""
    return next((member.name for member in team.members if member.role == "proxy"), team.members[0].name)


def recipients(team: TeamSpec, name: str) -> list[str]:
    """Whom a member may write to: everybody but itself and the proxy."""
    return [member.name for member in team.members if member.name != name and member.role != "proxy"]


def assistant_briefing(
    member: RoleSpec, state: State, sources: Sources, part: str = ""
) -> tuple[Message, ...]:
    """A stable head with the member's part, the project and the data cards, then the thread."""
    cards = [f"# Data file {card.path}\n{card.card}" for card in state.work.data_cards]
    around = "" if member.role == "proxy" else environment_section(state, can_ask=False)
    project = project_sections(member, state)
    head = "\n\n".join(filter(None, [part, member.instructions, *project, around, *cards]))
    messages = (Message(role="system", text=head), *member_thread(state, member.name))
    if member.role != "proxy" and (found := edited_files_section(state, sources)):
        messages = (*messages, Message(role="user", text="\n".join(found)))
    if refused := state.talk.refusal_of(member.name):
        reason = f"Your last reply could not be used: {refused.reason}"
        messages = (*messages, Message(role="user", text=reason))
    return messages


def has_project(state: State) -> bool:
    return state.base is not None and state.base.survey.kind != "empty"


def project_sections(member: RoleSpec, state: State) -> list[str]:
    """The person's files: the proxy is told that there are some, the others what they are."""
    if member.role != "proxy" or not has_project(state):
        return base_sections(state)
    return ["The person's folder holds a project, which the assistants can search, read, change and run."]


def wants_work(state: State) -> bool:
    """Whether the person's last words ask for more than an answer; a question leaves no files behind."""
    spoken = [said.text for said in state.talk.messages if isinstance(said, PersonSpoke)]
    return not is_question((spoken or [state.goal])[-1])


def answer_text(state: State) -> str:
    """The answer that the person was given; nothing while there is none."""
    return answer_words(state.talk.answer) if state.talk.answer else ""


def answer_words(answer: AnswerGiven) -> str:
    """The answer, for every number the script and the line of its output, and what stands where it refers to."""
    lines = [f"{one.number} ← {one.script}, output line {one.line}: {one.text}" for one in answer.sources]
    lines += [f"{one.path}:{one.line} ← {one.text}" for one in answer.references]
    lines += [f"not verified: {said}" for said in answer.unverified]
    return "\n".join([answer.text, *([""] if lines else []), *lines])


NO_REFERENCES = References()
NO_SUCH_LINE = "no file and line is where the reply says: "


def reference_refusal(state: State, name: str, references: References) -> Refusal | None:
    """References that lead to nothing, named to the member once."""
    told = state.talk.refusal_of(name)
    if not references.unverified or (told is not None and told.reason.startswith(NO_SUCH_LINE)):
        return None
    wrong = "; ".join(references.unverified)
    return Refusal(reason=f"{NO_SUCH_LINE}{wrong}. Look again, and name only lines that you know")


def answer(
    state: State, name: str, text: str, references: References = NO_REFERENCES
) -> AnswerGiven | Refusal:
    """The words for the person, if the rule allows them: complete, an error reported, or certain."""
    certain = text.startswith(CERTAIN)
    asked = replies(state, name)
    if not text.strip():
        return Refusal(reason="the answer is empty")
    if not asked and not certain:
        reason = "nobody has been asked yet: use SendMessage, or begin with CERTAIN: if you are"
        return Refusal(reason=reason)
    words = text.removeprefix(CERTAIN).strip()
    found = number_sources(state, words)
    if found.without_source:
        numbers = ", ".join(found.without_source)
        return Refusal(reason=f"no program printed {numbers}: use only numbers that stand in an output")
    if refusal := reference_refusal(state, name, references):
        return refusal
    ground = "certain" if not asked else "error" if asked[-1].failed else "complete"
    return AnswerGiven(
        by=name,
        text=words,
        ground=ground,
        sources=found.sources,
        references=references.found,
        unverified=references.unverified,
    )


def replies(state: State, name: str) -> list[ToolAnswered]:
    """What recipients answered since the person's last question."""
    sent: set[str] = set()
    found: list[ToolAnswered] = []
    for said in state.talk.messages:
        if isinstance(said, PersonSpoke):
            found = []
        elif isinstance(said, ToolCalled) and said.by == name and message_sent_by(said):
            sent.add(said.id)
        elif isinstance(said, ToolAnswered) and said.id in sent:
            found.append(said)
    return found


def number_sources(state: State, words: str) -> Citations:
    """Where the numbers come from; only of data must each have a source, and code is told by its lines."""
    if has_project(state) and not state.work.data:
        return Citations()
    outputs = [
        ScriptOutput(script=said.about or said.command or said.purpose, text=said.result.stdout)
        for said in state.talk.messages
        if isinstance(said, RunFinished)
    ]
    asked = [said.text for said in state.talk.messages if isinstance(said, PersonSpoke)]
    traced = trace_numbers(words, outputs, given="\n".join([state.goal, *asked]))
    return traced if state.work.data else Citations(sources=traced.sources)
