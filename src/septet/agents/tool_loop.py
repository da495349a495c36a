"""A member that works with tools: model answers and tool calls in turn, until it gives a result or a bound ends it."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from septet.agents.ask import ask_model
from septet.agents.protection import check_overwrite
from septet.agents.questions import ask_person, may_ask
from septet.agents.replies import cut_answer, refused_by
from septet.agents.run_context import RunContext
from septet.agents.tool_context import CallContext, call_context, with_edits
from septet.common.text import cut_middle
from septet.domain.events import (
    Event,
    FactsChanged,
    MemberBriefed,
    ModelAnswered,
    ToolAnswered,
    ToolCalled,
)
from septet.domain.facts import change_in
from septet.domain.files import FileChange, FileRef
from septet.domain.messages import Answer, Message, ToolCall
from septet.domain.plans import Refusal
from septet.domain.state import State, Turn
from septet.domain.teams import RoleSpec
from septet.errors import Overdrawn
from septet.ports import Agent, Blobs, Model, Record
from septet.tools.registry import Outcome, Toolbox, ToolResult
from septet.workspace.changes import Change, file_changes, prepare_change
from septet.workspace.files import path_and_parents

LONGEST_ANSWER = 8_000
"""Bytes of an answer that a model is told; the whole of a longer one is a blob."""


async def answer_call(
    state: State,
    record: Record,
    call: ToolCalled,
    run_context: RunContext,
    tools: Toolbox,
    *,
    interrupted: bool,
) -> State:
    """Run the tool and record its answer."""
    context = await call_context(state, record, run_context, call)
    said = refused_edit(state, call, tools) or await use_tool(call, tools, context, interrupted)
    answer = await tool_answer(state, said, context, run_context)
    if context.made and tools[call.name].keeps_output and not answer.failed:
        made = await changes_to_keep(state, context.made, run_context)
        answer = replace(answer, changes=(*answer.changes, *made))
    return await record(answer)


async def changes_to_keep(
    state: State, made: Iterable[FileChange], run_context: RunContext
) -> tuple[FileChange, ...]:
    """What a program changed, without what git ignores and what was not stored."""
    hidden = await run_context.hidden_paths(state)
    return tuple(
        one
        for one in made
        if (one.sha256 or one.kind == "deleted") and path_and_parents(one.path).isdisjoint(hidden)
    )


async def use_tool(call: ToolCalled, tools: Toolbox, context: CallContext, interrupted: bool) -> Outcome:
    """Run the tool. After an interruption, one that is not repeatable is not run again."""
    if unknown := unknown_tool(call.name, tools):
        return unknown
    if interrupted and not tools[call.name].repeatable:
        return Refusal(reason=f"{call.name} was interrupted; whether it took effect is not known")
    return await tools[call.name].use(context, call.arguments)


def refused_edit(state: State, call: ToolCalled, tools: Toolbox) -> Refusal | None:
    """Why a call that is about all edits of its answer is not carried out: half of them would only mislead."""
    if call.name not in tools or not tools[call.name].needs_edits:
        return None
    answer = call.id.rpartition(".")[0]
    together = (
        [one for one in state.floor.turn.calls if one.id.rpartition(".")[0] == answer]
        if state.floor.turn
        else []
    )
    for one in together:
        result = state.talk.tool_results.get(one.id)
        if result is not None and result.failed and one.name in tools and tools[one.name].edits:
            return Refusal(
                reason=f"{call.name} was not carried out, for {one.name} before it was refused: mend that first"
            )
    return None


def unknown_tool(name: str, names: Collection[str]) -> Refusal | None:
    reason = f"there is no tool '{name}'; the tools are {', '.join(names)}"
    return Refusal(reason=reason) if name not in names else None


async def tool_answer(
    state: State, said: Outcome, context: CallContext, run_context: RunContext
) -> ToolAnswered:
    """The tool's answer and requested changes as an event. Nothing is on disk yet.

    The files of a `ToolResult` are written byte by byte. Those of a tool that returns a plain text are formatted, and
    the answer gets the diff.
    """
    call, texts = context.call.id, context.texts
    own = None if isinstance(said, ToolResult) else texts.known.keys() - state.work.person_files
    edited = context.wished.keys() & texts.read.keys()  # before the diff below reads further files
    change = said if isinstance(said, Refusal) else await possible_change(context, own)
    if isinstance(change, Refusal) or isinstance(said, Refusal):
        reason = said if isinstance(said, Refusal) else change
        assert isinstance(reason, Refusal)
        return ToolAnswered(id=call, text=reason.reason, failed=True)
    replaced = change.texts.keys() - texts.known.keys() - edited
    if (refused := await check_overwrite(state, replaced, run_context)) is not None:
        return ToolAnswered(id=call, text=refused.reason, failed=True, shown=refused.shown_files)
    changes = await file_changes(change.texts, texts, run_context.blobs)
    answer = replace(to_tool_answer(said, change), id=call, changes=changes)
    told = await shorten_answer(answer, run_context.blobs)
    whole = said.shown if isinstance(said, ToolResult) else told_whole(context, told.text)
    shown = {*edited, *whole}
    return replace(told, shown=await file_refs(context, shown, run_context.blobs))


async def possible_change(context: CallContext, own: Collection[str] | None) -> Change | Refusal:
    """The changes that the call requests, if allowed; without a base only files of earlier versions may be deleted."""
    texts = context.texts
    kept = [path for path, text in context.wished.items() if text is None and path not in texts.known]
    if kept and not context.has_base:
        return Refusal(reason=f"{', '.join(kept)}: a file of the person's, which only the person deletes")
    return await prepare_change(texts, context.wished, own)


def to_tool_answer(said: str | ToolResult, change: Change) -> ToolAnswered:
    if isinstance(said, ToolResult):
        return ToolAnswered(id="", text=said.text, summary=said.summary, ready=said.ready)
    return ToolAnswered(id="", text="\n".join(filter(None, [said, change.diff])))


async def shorten_answer(answer: ToolAnswered, blobs: Blobs) -> ToolAnswered:
    """Cut the middle of a long answer, and store the full text as a blob."""
    content = answer.text.encode(errors="replace")
    if len(content) <= LONGEST_ANSWER:
        return answer
    room = LONGEST_ANSWER * len(answer.text) // len(content) - 80
    return replace(answer, text=cut_middle(answer.text, room), whole=await blobs.put(content))


def told_whole(context: CallContext, text: str) -> set[str]:
    """The person's files whose full text is in the answer."""
    return {path for path in context.texts.read if context.texts[path] in text}


async def file_refs(context: CallContext, paths: Iterable[str], blobs: Blobs) -> tuple[FileRef, ...]:
    """The person's files that the call changed or showed, with their content before the call."""
    read = {path: context.texts.read[path] for path in sorted(paths) if path in context.texts.read}
    return tuple(
        [
            FileRef(path=path, sha256=await blobs.put(content), size=len(content))
            for path, content in read.items()
        ]
    )


SHORT = 400
"""Answers of tools with no more characters are not shortened."""
ANSWERS_BETWEEN = 10
"""Minimum number of answers between two shortenings of the member's messages."""
LEAST_SAVED = 24_000
"""Characters that shortening must save at least."""
CACHED_PRICE = 0.1
"""Price of a cached token, relative to the full price."""
SHORTENED = (
    "What tools answered until here is told in a line each from now on. Call again what you need of it."
)
LOST = "(not carried out: the turn was ended before)"


def member_messages(state: State, member: str) -> tuple[Message, ...]:
    """The messages of the member's next request; none before its first briefing."""
    messages: list[Message] = []
    open_calls: dict[str, ToolCall] = {}
    calls: dict[str, str] = {}
    shortened = shortened_before(state, member)
    for place, said in enumerate(state.talk.messages):
        match said:
            case MemberBriefed(member=name, system=system) if name == member:
                messages += [*lost_answers(open_calls), *([system_message(system)] if system else [])]
                messages.append(Message(role="user", text=said.text, images=said.images))
            case ModelAnswered(role=name, answer=answer) if name == member and messages:
                messages += lost_answers(open_calls)
                messages.append(assistant_message(answer))
                open_calls = {call.id: call for call in answer.calls}
            case ToolCalled(id=number, by=name, call=call) if name == member:
                calls[number] = call
            case ToolAnswered(id=number) if calls.get(number) in open_calls:
                call = open_calls.pop(calls[number])
                text = short_text(said) if place < shortened else said.text
                messages.append(Message(role="tool", text=text, call=call.id))
            case _:
                continue
    return tuple(messages)


def assistant_message(answer: Answer) -> Message:
    """The member's answer as a message; reasoning is included if the answer calls tools."""
    replay = answer.replay if answer.calls else ""
    return Message(role="assistant", text=answer.text, calls=answer.calls, replay=replay)


def system_message(text: str) -> Message:
    return Message(role="system", text=text)


def lost_answers(calls: dict[str, ToolCall]) -> list[Message]:
    """Answers for calls that were not run: providers require one for every call before the next message."""
    lost = [Message(role="tool", text=LOST, call=call) for call in calls]
    calls.clear()
    return lost


def shortened_before(state: State, member: str) -> int:
    """The sequence number before which answers of tools are shortened to a line."""
    marks = [
        place
        for place, said in enumerate(state.talk.messages)
        if isinstance(said, MemberBriefed) and said.member == member and said.shortens
    ]
    return marks[-1] if marks else 0


def short_text(answered: ToolAnswered) -> str:
    """The shortened answer: its summary, or its first words."""
    if len(answered.text) <= SHORT:
        return answered.text
    line = answered.summary or answered.text[: SHORT // 2].split("\n")[0]
    return f"({line}; the rest of {len(answered.text)} characters is left out, call again what you need)"


def should_shorten(state: State, member: str) -> bool:
    """Whether shortening old answers saves more than it costs.

    Cached tokens cost a tenth. After shortening, the remaining messages are read once at the full price; then each
    request is shorter.
    """
    since = state.talk.messages[shortened_before(state, member) :]
    given = [said.answer for said in since if isinstance(said, ModelAnswered) and said.role == member]
    if len(given) < ANSWERS_BETWEEN:
        return False
    mark = MemberBriefed(member=member, text=SHORTENED, shortens=True)
    after = replace(state, talk=replace(state.talk, messages=state.talk.messages.plus(mark)))
    now, rest = (text_length(member_messages(one, member)) for one in (state, after))
    usage = given[-1].usage
    cached = usage.cached / usage.prompt if usage.prompt else 0.0
    saved, lost = (now - rest) * (1 - cached * (1 - CACHED_PRICE)), rest * cached * (1 - CACHED_PRICE)
    return now - rest >= LEAST_SAVED and saved * ANSWERS_BETWEEN > lost


def text_length(messages: Sequence[Message]) -> int:
    return sum(len(message.text) for message in messages)


def untold(messages: Sequence[Message], sections: Sequence[str]) -> list[str]:
    """The sections that no message contains word for word."""
    told = [message.text for message in messages if message.role == "user"]
    return [section for section in sections if not any(section in text for text in told)]


MOST_CALLS = 40
"""Tool calls in one turn, independent of budgets."""
ENOUGH = f"{MOST_CALLS} calls are all that one turn has: say now what you have come to, without another call."
Brief = Callable[[State], Awaitable[MemberBriefed]]
"""Builds the member's briefing at the beginning of a turn."""
Settle = Callable[[State, str], Awaitable[Event | Refusal]]
"""Turns the member's final reply and its edits into an event."""


@dataclass(frozen=True)
class ToolMember:
    """A member that works with tools: its model, tools, briefing, and the function that ends its turn."""

    spec: RoleSpec
    model: Model
    run_context: RunContext
    tools: Callable[[], Awaitable[Toolbox]]
    brief: Brief
    settle: Settle
    person: Agent
    """Who answers what it asks."""


def tool_agent(member: ToolMember) -> Agent:
    """An agent with a tool loop. It continues after a crash where the log ends, and retries a refused reply at once."""

    async def turn(state: State, record: Record) -> Event | None:
        if state.floor.turn is None or state.floor.turn.closed:
            return None
        if not state.floor.turn.briefings:
            state = await record(await member.brief(state))
        await member.run_context.write_newest(with_edits(state))
        return await work(member, state, record)

    return turn


async def work(member: ToolMember, state: State, record: Record) -> Event | None:
    """Alternate answers and calls until a reply becomes an event."""
    tools = await member.tools()
    while True:
        said, state = await latest_answer(member, state, record, tools)
        complaint = ""
        if said.answer.calls and calls_made(state) < MOST_CALLS:
            state = await run_tool_calls(member, state, record, said, tools)
            if state.stop_requested:
                return await end_early(member, state)
            complaint = ENOUGH if calls_made(state) >= MOST_CALLS else ""
        if is_final(state, said):
            cut = cut_answer(member.spec, said.answer)
            words = said.answer.text or (HANDED_IN if said.answer.calls else "")
            event = cut or await member.settle(state, words)
            if not (complaint := complaint_about(state, event)):
                return refused_by(member.spec, event)
        if complaint:
            state = await record(MemberBriefed(member=member.spec.name, text=complaint))


HANDED_IN = "checked and handed in"
"""What a member has said that hands in without a word."""


def is_final(state: State, said: ModelAnswered) -> bool:
    """Whether nothing is to be asked after the answer: it has no calls, or open ones, or one that handed in."""
    turn = state.floor.turn
    results = [state.talk.tool_results.get(number) for number in call_ids(turn, said)] if turn else []
    return not said.answer.calls or None in results or any(one.ready for one in results if one)


def complaint_about(state: State, event: Event | Refusal) -> str:
    """The complaint about a refused reply, for the same turn; empty after the last attempt."""
    given_up = complaints(state) >= state.team.refusals
    return event.reason if isinstance(event, Refusal) and not given_up else ""


def calls_made(state: State) -> int:
    return len(state.floor.turn.calls) if state.floor.turn else 0


def complaints(state: State) -> int:
    """Count the refusals of the member's replies in this turn."""
    return max(0, len(state.floor.turn.briefings) - 1) if state.floor.turn else 0


async def latest_answer(
    member: ToolMember, state: State, record: Record, tools: Toolbox
) -> tuple[ModelAnswered, State]:
    """The answer whose calls are open: the last one, or a new one if all its calls are done."""
    turn = state.floor.turn
    assert turn is not None
    if turn.answers and turn.briefings[-1] < len(turn.answers):
        said = turn.answers[-1]
        if is_final(state, said):
            return said, state
    offers = tuple(tool.offer() for tool in tools.values())
    spec, bus = member.spec, member.run_context.bus
    if should_shorten(state, spec.name):
        state = await record(MemberBriefed(member=spec.name, text=SHORTENED, shortens=True))
    try:
        said = await ask_model(spec, member.model, bus, state, member_messages(state, spec.name), offers)
    except Overdrawn:
        if (version := await end_early(member, state)) is not None:
            await record(version)
        raise
    state = await record(said)
    if not said.answer.calls and (change := change_in(said.answer.text)):
        state = await record(FactsChanged(by=spec.name, change=change))
    return said, state


async def end_early(member: ToolMember, state: State) -> Event | None:
    """The version with the edits so far, if the turn is stopped; None if nothing was changed."""
    if with_edits(state) is state:
        return None
    event = await member.settle(state, "")
    return None if isinstance(event, Refusal) else event


def call_ids(turn: Turn, said: ModelAnswered) -> list[str]:
    """The ids in the log of the calls in the turn's latest answer."""
    return [f"{turn.number}.{len(turn.answers)}.{place}" for place in range(1, len(said.answer.calls) + 1)]


def unanswered_calls(state: State, said: ModelAnswered) -> list[tuple[ToolCalled, bool]]:
    """The calls of the turn's latest answer that have no result yet, each with whether it is recorded already."""
    turn = state.floor.turn
    assert turn is not None, "an answer with calls is part of a turn"
    before = {call.id: call for call in turn.calls}
    return [
        (
            before.get(number)
            or ToolCalled(id=number, by=said.role, name=wish.name, arguments=wish.arguments, call=wish.id),
            number in before,
        )
        for number, wish in zip(call_ids(turn, said), said.answer.calls, strict=True)
        if number not in state.talk.tool_results
    ]


async def run_tool_calls(
    member: ToolMember, state: State, record: Record, said: ModelAnswered, tools: Toolbox
) -> State:
    """Run every call of the answer in order: record the call, run it, record the result and the changed files."""
    for call, interrupted in unanswered_calls(state, said):
        if not interrupted:
            state = await record(call)
        if call.name in tools and tools[call.name].asks and may_ask(state, call):
            state = await ask_person(member.person, state, record, call)
            if state.stop_requested:
                return state
            continue
        state = await answer_call(state, record, call, member.run_context, tools, interrupted=interrupted)
        if state.talk.tool_results[call.id].changes:
            await member.run_context.write_newest(with_edits(state))
    return state
