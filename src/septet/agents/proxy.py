"""The person's place at the table: asked at a terminal, answered beforehand by a flag, or away."""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Literal

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
from septet.domain.facts import change_in
from septet.domain.packages import wanted_words
from septet.domain.plans import Plan, parse_plan, plan_digest, plan_text
from septet.domain.state import State
from septet.domain.values import Value
from septet.errors import NeedsPerson
from septet.ports import Acts, Agent

APPROVALS = {
    "",
    "y",
    "yes",
    "ok",
    "okay",
    "approve",
    "approved",
    "sounds good",
    "looks good",
    "lgtm",
    "save",
    "save it",
    "save the plan",
    "save plan",
    "save this plan",
    "please save",
    "please save it",
    "please save the plan",
    "that sounds good",
    "that looks good",
    "go ahead",
    "perfect",
}
COURTESIES = {"thanks", "thank you", "please", "great", "good"}
FREELY = {"c", "continue"}
PAUSES = re.compile(r"[.,;!\n]+|\band\b")
STOPS = {"q", "quit", "stop"}
REFUSALS = {"n", "no", "never", "don't"}


class Question(Value):
    """What the team wants to know from the person."""

    kind: Literal["plan", "step", "review", "packages"]
    text: str


Ask = Callable[[Question], Awaitable[str]]


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


def approves(text: str) -> bool:
    """Nothing but approval, perhaps in several ways: "Sounds good, save it." A single wish more is feedback."""
    parts = {part.strip() for part in PAUSES.split(text.lower())} - {""}
    return not text.strip() or (parts <= APPROVALS | COURTESIES and bool(parts & APPROVALS))


def understood(state: State, asked: Question, text: str) -> Event:
    """The person's words as an event: an approval, a go, a stop, a plan of their own, or what somebody must hear."""
    words = text.strip().lower().rstrip(".!")
    if words in STOPS:
        return StopRequested()
    if asked.kind == "packages" and words in APPROVALS | REFUSALS | {"always"}:
        names = tuple(sorted(state.provisions.asked.names))
        return PackagesDecided(names=names, allowed=words not in REFUSALS, always=words == "always")
    if asked.kind == "plan" and approves(text) and state.plan is not None:
        return PlanApproved(plan=plan_digest(state.plan))
    if change := change_in(text):
        return FactsChanged(by="person", change=change)
    if words == "accept" and asked.kind == "review":
        return WorkAccepted()
    if words in APPROVALS | FREELY | {"step"} and asked.kind != "plan":
        return StepGranted(freely=asked.kind == "step" and words in FREELY)
    plan = parse_plan(text) if asked.kind == "plan" and "check:" in text else None
    return PlanProposed(plan=plan, by="person") if isinstance(plan, Plan) else PersonSpoke(text=text.strip())


def present(ask: Ask) -> Agent:
    """A person who can be asked now."""

    async def turn(state: State) -> AsyncGenerator[Event, None]:
        if (asked := question(state)) is not None:
            yield understood(state, asked, await ask(asked))

    return turn


def with_chat_released(person: Agent, take: Callable[[str], None], release: Callable[[str], None]) -> Agent:
    """A person who is waited for: until the answer is there, others may have the chat."""

    async def turn(state: State) -> Acts:
        if question(state) is not None:
            release(state.chat)
        async with aclosing(person(state)) as events:
            async for event in events:
                take(state.chat)
                yield event
        take(state.chat)

    return turn


async def agreeing(state: State) -> AsyncGenerator[Event, None]:
    """A person who said yes to everything beforehand (`--yes`)."""
    asked = question(state)
    if asked is not None and asked.kind == "plan" and state.plan is not None:
        yield PlanApproved(plan=plan_digest(state.plan), by="flag")
    elif asked is not None and asked.kind == "packages":
        names = tuple(sorted(state.provisions.asked.names))
        yield PackagesDecided(names=names, allowed=True, by="flag")
    elif asked is not None:
        yield StepGranted()


def agreeing_to_work(person: Agent) -> Agent:
    """A person who said yes to plans and files beforehand, and wants to be asked what is installed."""

    def turn(state: State) -> Acts:
        asked = question(state)
        return person(state) if asked is not None and asked.kind == "packages" else agreeing(state)

    return turn


async def away(state: State) -> AsyncGenerator[Event, None]:
    """A person who is not here: what was answered meanwhile counts, else the chat waits."""
    asked = question(state)
    if asked is not None:
        yes = "yes" if asked.kind == "packages" else "sounds good"
        remedy = f"answer with: septet resume {state.chat} '{yes}'"
        raise NeedsPerson(f"the chat waits for a person ({asked.kind})", remedy)
    return
    yield  # makes this an async generator: there is nothing to add to the log
