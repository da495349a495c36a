"""Agents for the person: asked at a terminal, agreeing by an option, or absent."""

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
from septet.team.questions import SHORT_ACTION, Question, ask_answer, question, read_answer

AGREEMENTS = {"packages": "yes", "ask": "YOUR ANSWER"}
Ask = Callable[[Question], Awaitable[str]]


class AnsweredElsewhere(Exception):
    """The person's answer is already in the log; the conductor must read the log again."""


def present(ask: Ask) -> Agent:
    """A person who is asked now, through `ask`."""

    async def turn(state: State, record: Record) -> None:
        if (asked := question(state)) is not None:
            for event in read_answer(state, asked, await ask(asked)):
                await record(event)

    return turn


def with_chat_released(person: Agent, take: Callable[[str], None], release: Callable[[str], None]) -> Agent:
    """Release the chat's lock while waiting for the person, so that other processes may use the chat."""

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
    """Answer yes to everything (`--yes`)."""
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
    return StepGranted(action=asked.action)


def agreeing_to_work(person: Agent) -> Agent:
    """Approve plans and files, and ask the person about packages."""

    async def turn(state: State, record: Record) -> Event | None:
        asked = question(state)
        here = asked is not None and asked.kind in ("packages", "ask")
        return await (person if here else always_agree)(state, record)

    return turn


def agreeing_to_plans(person: Agent) -> Agent:
    """Approve plans, and ask the person about steps and reviews."""

    async def turn(state: State, record: Record) -> Event | None:
        asked = question(state)
        here = asked is not None and asked.kind in ("step", "review", "ask")
        return await (person if here else always_agree)(state, record)

    return turn


def absent_person(command: str) -> Agent:
    """An absent person: use an answer that is in the log, else stop and say which `command` continues the chat."""

    async def turn(state: State, record: Record) -> None:
        asked = question(state)
        if asked is not None:
            yes = AGREEMENTS.get(asked.kind, "sounds good")
            what = asked.text if asked.kind == "ask" else asked.kind
            cause = f"the chat waits for a person ({what})"
            exactly = f"--action {asked.action[:SHORT_ACTION]}"
            raise NeedsPerson(cause, f"answer with: {command} '{yes}' {exactly}")

    return turn
