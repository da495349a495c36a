"""The person's place at the table: asked at a terminal, answered beforehand by a flag, or away."""

from collections.abc import Awaitable, Callable
from typing import Literal

from septet.common.values import Value
from septet.domain.approvals import accepts, approves
from septet.domain.events import (
    Event,
    FactsChanged,
    PackagesDecided,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    StepGranted,
    StopRequested,
    WorkAccepted,
)
from septet.domain.facts import change_in, without_facts
from septet.domain.packages import wanted_words
from septet.domain.plans import Plan, parse_plan, plan_digest, plan_text
from septet.domain.state import State
from septet.errors import NeedsPerson
from septet.ports import Agent, Record

FREELY = {"c", "continue"}
STOPS = {"q", "quit", "stop"}
REFUSALS = {"n", "no", "never", "don't"}


class Question(Value):
    """What the team wants to know from the person."""

    kind: Literal["plan", "step", "review", "packages"]
    text: str


Ask = Callable[[Question], Awaitable[str]]


class Answered(Exception):
    """The person's words are in the log already; who conducts has to open it again to see them."""


def question(state: State) -> Question | None:
    """What is open right now; None when the person has said enough for the team to go on."""
    if state.team.packages == "ask" and (asked := state.provisions.asked):
        return Question(kind="packages", text=f"install {wanted_words(asked)}?")
    if state.plan is not None and not state.approved:
        return None if state.remarks else Question(kind="plan", text=plan_text(state.plan))
    if state.team.stepwise and state.steps <= sum(state.turns.values()) - state.turns.get("proxy", 0):
        return Question(kind="step", text="take one more step?")
    turn = state.turn
    if state.version is not None and turn is not None and turn.speaker == "proxy" and not turn.settled:
        return Question(kind="review", text=state.workspace)
    return None


def understood(state: State, asked: Question | None, text: str) -> tuple[Event, ...]:
    """The person's words as events: facts to know for good, and whatever else was said."""
    change, rest = change_in(text), without_facts(text)
    facts = (FactsChanged(by="person", change=change),) if change else ()
    if facts and not rest:
        return facts
    return (*facts, meaning(state, asked, rest) if asked else PersonSpoke(text=rest))


def meaning(state: State, asked: Question, text: str) -> Event:
    """An approval, a go, a stop, a plan of the person's own, or what somebody must hear."""
    words = text.strip().lower().rstrip(".!")
    if words in STOPS:
        return StopRequested()
    if asked.kind == "packages" and (approves(text) or words in {*REFUSALS, "always"}):
        names = tuple(sorted(state.provisions.asked.names))
        return PackagesDecided(names=names, allowed=words not in REFUSALS, always=words == "always")
    if asked.kind == "plan" and approves(text) and state.plan is not None:
        return PlanApproved(plan=plan_digest(state.plan))
    if asked.kind == "review" and accepts(text):
        return WorkAccepted()
    if asked.kind != "plan" and (approves(text) or words in {*FREELY, "step"}):
        return StepGranted(freely=asked.kind == "step" and words in FREELY)
    plan = parse_plan(text) if asked.kind == "plan" and "check:" in text else None
    return PlanProposed(plan=plan, by="person") if isinstance(plan, Plan) else PersonSpoke(text=text.strip())


def present(ask: Ask) -> Agent:
    """A person who can be asked now."""

    async def turn(state: State, record: Record) -> None:
        if (asked := question(state)) is not None:
            for event in understood(state, asked, await ask(asked)):
                await record(event)

    return turn


def with_chat_released(person: Agent, take: Callable[[str], None], release: Callable[[str], None]) -> Agent:
    """A person who is waited for: until the answer is there, others may have the chat."""

    async def turn(state: State, record: Record) -> Event | None:
        async def record_own(event: Event) -> State:
            take(state.chat)
            return await record(event)

        if question(state) is not None:
            release(state.chat)
        last = await person(state, record_own)
        take(state.chat)
        return last

    return turn


async def agreeing(state: State, record: Record) -> Event | None:
    """A person who said yes to everything beforehand (`--yes`)."""
    asked = question(state)
    if asked is None:
        return None
    if asked.kind == "plan" and state.plan is not None:
        return PlanApproved(plan=plan_digest(state.plan), by="flag")
    if asked.kind == "packages":
        names = tuple(sorted(state.provisions.asked.names))
        return PackagesDecided(names=names, allowed=True, by="flag")
    return StepGranted()


def agreeing_to_work(person: Agent) -> Agent:
    """A person who said yes to plans and files beforehand, and wants to be asked what is installed."""

    async def turn(state: State, record: Record) -> Event | None:
        asked = question(state)
        here = asked is not None and asked.kind == "packages"
        return await (person if here else agreeing)(state, record)

    return turn


def agreeing_to_plans(person: Agent) -> Agent:
    """A person who takes plans as they come, and wants to be asked before turns and reviews all the same."""

    async def turn(state: State, record: Record) -> Event | None:
        asked = question(state)
        here = asked is not None and asked.kind in ("step", "review")
        return await (person if here else agreeing)(state, record)

    return turn


def away(command: str) -> Agent:
    """A person who is not here: what was answered meanwhile counts, else the chat waits for the `command`."""

    async def turn(state: State, record: Record) -> None:
        asked = question(state)
        if asked is not None:
            yes = "yes" if asked.kind == "packages" else "sounds good"
            cause = f"the chat waits for a person ({asked.kind})"
            raise NeedsPerson(cause, f"answer with: {command} '{yes}'")

    return turn
