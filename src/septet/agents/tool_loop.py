"""A member that works with tools: answers and calls in turn, until it says what it has come to or a bound ends it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from septet.agents.ask import ask_model
from septet.agents.replies import cut_answer, refused_by
from septet.agents.runner import RunContext
from septet.agents.thread import SHORTENED, member_messages, should_shorten
from septet.agents.tool_calls import answer_call
from septet.agents.tool_context import with_edits
from septet.domain.events import (
    Event,
    FactsChanged,
    MemberBriefed,
    ModelAnswered,
    ToolCalled,
)
from septet.domain.facts import change_in
from septet.domain.plans import Refusal
from septet.domain.state import State, Turn
from septet.domain.teams import RoleSpec
from septet.errors import Overdrawn
from septet.ports import Agent, Model, Record
from septet.tools.registry import Toolbox

MOST_CALLS = 40
"""Of one turn, besides all budgets."""
ENOUGH = f"{MOST_CALLS} calls are all that one turn has: say now what you have come to, without another call."
Brief = Callable[[State], Awaitable[MemberBriefed]]
"""What the member is told at the beginning of a turn."""
Settle = Callable[[State, str], Awaitable[Event | Refusal]]
"""What the member's last words come to, with what it has changed."""


@dataclass(frozen=True)
class ToolMember:
    """A member that works with tools: how it is told of a turn, and what its last words come to."""

    spec: RoleSpec
    model: Model
    run_context: RunContext
    tools: Callable[[], Awaitable[Toolbox]]
    brief: Brief
    settle: Settle


def tool_agent(member: ToolMember) -> Agent:
    """What was said and done before a crash counts; what a refusal asks for is said in the same turn."""

    async def turn(state: State, record: Record) -> Event | None:
        if state.floor.turn is None or state.floor.turn.closed:
            return None
        if not state.floor.turn.briefings:
            state = await record(await member.brief(state))
        await member.run_context.write_newest(with_edits(state))
        return await work(member, state, record)

    return turn


async def work(member: ToolMember, state: State, record: Record) -> Event | None:
    """Answers and calls, until the member's words come to something."""
    tools = await member.tools()
    while True:
        said, state = await latest_answer(member, state, record, tools)
        if said.answer.calls and calls_made(state) < MOST_CALLS:
            state = await carry_out_calls(member, state, record, said, tools)
            if state.stop_requested:
                return await end_early(member, state)
            complaint = ENOUGH if calls_made(state) >= MOST_CALLS else ""
        else:
            cut = cut_answer(member.spec, said.answer)
            event = cut or await member.settle(state, said.answer.text)
            if not (complaint := complaint_about(state, event)):
                return refused_by(member.spec, event)
        if complaint:
            state = await record(MemberBriefed(member=member.spec.name, text=complaint))


def complaint_about(state: State, event: Event | Refusal) -> str:
    """What is said in the same turn to words that would not do; nothing once that has not helped."""
    given_up = complaints(state) >= state.team.refusals
    return event.reason if isinstance(event, Refusal) and not given_up else ""


def calls_made(state: State) -> int:
    return len(state.floor.turn.calls) if state.floor.turn else 0


def complaints(state: State) -> int:
    """How often the member was told in this turn that its words would not do."""
    return max(0, len(state.floor.turn.briefings) - 1) if state.floor.turn else 0


async def latest_answer(
    member: ToolMember, state: State, record: Record, tools: Toolbox
) -> tuple[ModelAnswered, State]:
    """The answer that is to be worked on: the last one, or a new one where all is done that it asked for."""
    turn = state.floor.turn
    assert turn is not None
    if turn.answers and turn.briefings[-1] < len(turn.answers):
        said = turn.answers[-1]
        if not said.answer.calls or not all(
            number in state.talk.tool_results for number in numbers(turn, said)
        ):
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
    """What there is of the work, where somebody stops it; nothing where nothing was changed."""
    if with_edits(state) is state:
        return None
    event = await member.settle(state, "")
    return None if isinstance(event, Refusal) else event


def numbers(turn: Turn, said: ModelAnswered) -> list[str]:
    """What the log calls the calls of the turn's latest answer."""
    return [f"{turn.number}.{len(turn.answers)}.{place}" for place in range(1, len(said.answer.calls) + 1)]


async def carry_out_calls(
    member: ToolMember, state: State, record: Record, said: ModelAnswered, tools: Toolbox
) -> State:
    """Every call of the answer, in order: intent, deed, result, and the files as they are then."""
    assert state.floor.turn is not None
    before = {call.id: call for call in state.floor.turn.calls}
    for number, wish in zip(numbers(state.floor.turn, said), said.answer.calls, strict=True):
        if number in state.talk.tool_results:
            continue
        call = before.get(number) or ToolCalled(
            id=number, by=said.role, name=wish.name, arguments=wish.arguments, call=wish.id
        )
        if number not in before:
            state = await record(call)
        interrupted = number in before
        state = await answer_call(state, record, call, member.run_context, tools, interrupted=interrupted)
        if state.talk.tool_results[number].changes:
            await member.run_context.write_newest(with_edits(state))
    return state
