"""The person's place at the table: asked at a terminal, answered beforehand by a flag, or away."""

from collections.abc import Awaitable, Callable

from septet.domain.events import (
    Event,
    PackagesDecided,
    PlanApproved,
    StepGranted,
)
from septet.domain.plans import plan_digest
from septet.domain.state import State
from septet.errors import NeedsPerson
from septet.ports import Agent, Record
from septet.team.questions import Question, ask_answer, question, read_answer

AGREEMENTS = {"packages": "yes", "ask": "YOUR ANSWER"}
Ask = Callable[[Question], Awaitable[str]]


class AnsweredElsewhere(Exception):
    """The person's words are in the log already; who conducts has to open it again to see them."""


def present(ask: Ask) -> Agent:
    """A person who can be asked now."""

    async def turn(state: State, record: Record) -> None:
        if (asked := question(state)) is not None:
            for event in read_answer(state, asked, await ask(asked)):
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


async def always_agree(state: State, record: Record) -> Event | None:
    """A person who said yes to everything beforehand (`--yes`)."""
    asked = question(state)
    if asked is None:
        return None
    if asked.kind == "plan" and state.plan.current is not None:
        return PlanApproved(plan=plan_digest(state.plan.current), by="flag")
    if asked.kind == "packages":
        names = tuple(sorted(state.work.provisions.to_ask.names))
        return PackagesDecided(names=names, allowed=True, by="flag")
    if asked.kind == "ask":
        return ask_answer(asked, "")
    return StepGranted()


def agreeing_to_work(person: Agent) -> Agent:
    """A person who said yes to plans and files beforehand, and wants to be asked what is installed."""

    async def turn(state: State, record: Record) -> Event | None:
        asked = question(state)
        here = asked is not None and asked.kind in ("packages", "ask")
        return await (person if here else always_agree)(state, record)

    return turn


def agreeing_to_plans(person: Agent) -> Agent:
    """A person who takes plans as they come, and wants to be asked before turns and reviews all the same."""

    async def turn(state: State, record: Record) -> Event | None:
        asked = question(state)
        here = asked is not None and asked.kind in ("step", "review", "ask")
        return await (person if here else always_agree)(state, record)

    return turn


def absent_person(command: str) -> Agent:
    """A person who is not here: what was answered meanwhile counts, else the chat waits for the `command`."""

    async def turn(state: State, record: Record) -> None:
        asked = question(state)
        if asked is not None:
            yes = AGREEMENTS.get(asked.kind, "sounds good")
            what = asked.text if asked.kind == "ask" else asked.kind
            cause = f"the chat waits for a person ({what})"
            raise NeedsPerson(cause, f"answer with: {command} '{yes}'")

    return turn
