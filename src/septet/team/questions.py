"""What a team asks its person, and what the person's words mean as an answer. Pure."""

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

FREELY = {"c", "continue"}
STOPS = {"q", "quit", "stop"}
REFUSALS = {"n", "no", "never", "don't"}


class Question(Value):
    """What the team wants to know from the person."""

    kind: Literal["plan", "step", "review", "packages"]
    text: str


def question(state: State) -> Question | None:
    """What is open right now; None when the person has said enough for the team to go on."""
    if state.team.packages == "ask" and (asked := state.work.provisions.to_ask):
        return Question(kind="packages", text=f"install {wanted_words(asked)}?")
    if state.plan.current is not None and not state.plan.approved:
        return None if state.talk.remarks else Question(kind="plan", text=plan_text(state.plan.current))
    if state.team.stepwise and state.floor.granted_steps <= sum(
        state.floor.turn_counts.values()
    ) - state.floor.turn_counts.get(state.team.person, 0):
        return Question(kind="step", text="take one more step?")
    turn = state.floor.turn
    if (
        state.work.version is not None
        and turn is not None
        and turn.speaker == state.team.person
        and not turn.closed
    ):
        return Question(kind="review", text=place_of_program(state))
    return None


def place_of_program(state: State) -> str:
    """Where the person finds what the team has made: a copy of the person's folder is not to be looked for."""
    if state.base is None or state.base.deliveries:
        return f"the program is in {state.workspace}"
    return f"septet try {state.chat} runs the program, septet diff {state.chat} shows what it changes"


def read_answer(state: State, asked: Question | None, text: str) -> tuple[Event, ...]:
    """The person's words as events: facts to know for good, and whatever else was said."""
    change, rest = change_in(text), without_facts(text)
    facts = (FactsChanged(by="person", change=change),) if change else ()
    if facts and not rest:
        return facts
    return (*facts, answer_event(state, asked, rest) if asked else PersonSpoke(text=rest))


def answer_event(state: State, asked: Question, text: str) -> Event:
    """An approval, a go, a stop, a plan of the person's own, or what somebody must hear."""
    words = text.strip().lower().rstrip(".!")
    if words in STOPS:
        return StopRequested()
    if asked.kind == "packages" and (approves(text) or words in {*REFUSALS, "always"}):
        names = tuple(sorted(state.work.provisions.to_ask.names))
        return PackagesDecided(names=names, allowed=words not in REFUSALS, always=words == "always")
    if asked.kind == "plan" and approves(text) and state.plan.current is not None:
        return PlanApproved(plan=plan_digest(state.plan.current))
    if asked.kind == "review" and accepts(text):
        return WorkAccepted()
    if asked.kind != "plan" and (approves(text) or words in {*FREELY, "step"}):
        return StepGranted(freely=asked.kind == "step" and words in FREELY)
    plan = parse_plan(text) if asked.kind == "plan" and "check:" in text else None
    return PlanProposed(plan=plan, by="person") if isinstance(plan, Plan) else PersonSpoke(text=text.strip())
