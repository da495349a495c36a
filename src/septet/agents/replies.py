"""A member that asks a model once per turn: builds the prompt, asks, and turns the answer into an event."""

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from septet.agents.ask import ask_model
from septet.common.text import join_words
from septet.domain.events import Event, FactsChanged, ReplyRefused
from septet.domain.facts import change_in
from septet.domain.files import FileRef
from septet.domain.messages import Answer, Message
from septet.domain.plans import Refusal
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Bus, Model, Record

LAST_WORDS = 200
"""Characters from the end of a truncated answer that the refusal quotes."""


Brief = Callable[[State], Awaitable[tuple[Message, ...]]]
Settle = Callable[[State, str], Awaitable[Event | Refusal | None]]


def one_answer_agent(member: RoleSpec, model: Model, bus: Bus, brief: Brief, settle: Settle | None) -> Agent:
    """Ask for one answer per turn and record its event. An answer that was stored before a crash is used again."""

    async def turn(state: State, record: Record) -> Event | None:
        if state.floor.turn is None or state.floor.turn.closed:
            return None
        known = state.floor.turn.answers[-1:]
        said = known[0] if known else await ask_model(member, model, bus, state, await brief(state))
        trouble = misplaced_call(said.answer) or (
            cut_answer(member, said.answer) if settle else empty_message(said.answer)
        )
        news: list[Event] = [] if known else [said]
        if trouble is None and (change := change_in(said.answer.text)):
            news.append(FactsChanged(by=member.name, change=change))
        last = news.pop() if news and not (settle or trouble) else None
        for event in news:
            state = await record(event)
        return last or refused_by(
            member, trouble or (await settle(state, said.answer.text) if settle else None)
        )

    return turn


def refused_by(member: RoleSpec, event: Event | Refusal | None) -> Event | None:
    if not isinstance(event, Refusal):
        return event
    refused = ReplyRefused(role=member.name, reason=event.reason)
    if not isinstance(event, PartRefused):
        return refused
    return replace(refused, kept=event.kept, missing=event.missing)


def misplaced_call(answer: Answer) -> Refusal | None:
    """Refuse an answer that calls a tool although none was offered."""
    names = list(dict.fromkeys(call.name for call in answer.calls))
    were = "was" if len(names) == 1 else "were"
    reason = f"you have no tools here: {join_words(names)} {were} not called; reply in text"
    return Refusal(reason=reason) if names else None


def cut_answer(member: RoleSpec, answer: Answer) -> Refusal | None:
    """Refuse a truncated answer, except of a small model, which is stopped on purpose."""
    if answer.stop != "length" or answer.calls or member.form == "small":
        return None
    end = answer.text.rstrip()[-LAST_WORDS:]
    said = f"it ends with:\n{end}\n" if end else ""
    reason = f"your answer reached the longest length and was cut; {said}say it shorter, or in smaller steps"
    return Refusal(reason=reason)


def empty_message(answer: Answer) -> Refusal | None:
    return None if answer.text.strip() else Refusal(reason="the message is empty")


class PartRefused(Refusal):
    """A reply of which some files can be used: the member must resend `missing`, but not `kept`."""

    kept: tuple[FileRef, ...] = ()
    missing: tuple[str, ...] = ()
