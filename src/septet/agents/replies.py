"""A member that thinks with a model: brief it, ask once, turn the answer into the event that settles it."""

from collections.abc import Awaitable, Callable

from septet.agents.ask import ask_model
from septet.common.text import join_words
from septet.domain.events import Event, FactsChanged, ReplyRefused
from septet.domain.facts import change_in
from septet.domain.files import FileRef
from septet.domain.messages import Answer, Message
from septet.domain.plans import Refusal
from septet.domain.replies import CodeFile, code_files
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Blobs, Bus, Model, Record
from septet.workspace.files import path_problem
from septet.workspace.validation import elision_of, fault_text

MAIN = "main.py"
LAST_WORDS = 200
"""Characters of a cut answer that are shown back."""


Brief = Callable[[State], Awaitable[tuple[Message, ...]]]
Settle = Callable[[State, str], Awaitable[Event | Refusal | None]]


def one_answer_agent(member: RoleSpec, model: Model, bus: Bus, brief: Brief, settle: Settle | None) -> Agent:
    """One answer a turn, and the event that it leads to. What was said before a crash is used, not bought again."""

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
    return ReplyRefused(role=member.name, reason=event.reason) if isinstance(event, Refusal) else event


def misplaced_call(answer: Answer) -> Refusal | None:
    """A member that was offered no tools and calls one is told so, whatever else it says."""
    names = list(dict.fromkeys(call.name for call in answer.calls))
    were = "was" if len(names) == 1 else "were"
    reason = f"you have no tools here: {join_words(names)} {were} not called; reply in text"
    return Refusal(reason=reason) if names else None


def cut_answer(member: RoleSpec, answer: Answer) -> Refusal | None:
    """An answer that is not whole is none, whatever stands in it; a small model is stopped on purpose."""
    if answer.stop != "length" or answer.calls or member.form == "small":
        return None
    end = answer.text.rstrip()[-LAST_WORDS:]
    said = f"it ends with:\n{end}\n" if end else ""
    reason = f"your answer reached the longest length and was cut; {said}say it shorter, or in smaller steps"
    return Refusal(reason=reason)


def empty_message(answer: Answer) -> Refusal | None:
    return None if answer.text.strip() else Refusal(reason="the message is empty")


async def files_sent(state: State, text: str, blobs: Blobs) -> tuple[CodeFile, ...] | Refusal:
    """The whole files of a reply, if every one of them can become part of a version."""
    before = await sources(state, blobs)
    known = next(iter(before)) if len(before) == 1 else MAIN
    sent = code_files(text, only=known if known in before or not before else "", before=before)
    if isinstance(sent, Refusal):
        return sent
    paths = {*before, *(file.path for file in sent)}
    troubles = (
        path_problem(file.path, paths) or elision_refusal(file, before.get(file.path, "")) for file in sent
    )
    return next((trouble for trouble in troubles if trouble), sent)


def elision_refusal(file: CodeFile, before: str) -> Refusal | None:
    """Code that a comment or a bare `...` stands for; a file that was like that before may stay so."""
    fault = elision_of(file.text, file.path)
    if fault is None or elision_of(before, file.path) is not None:
        return None
    return Refusal(reason=f"{fault_text(file.path, fault)}; send the file whole")


async def keep_file(file: CodeFile, blobs: Blobs) -> FileRef:
    content = file.text.encode()
    return FileRef(path=file.path, sha256=await blobs.put(content), size=len(content))


async def sources(state: State, blobs: Blobs) -> dict[str, str]:
    """The newest version's files as text, from the log and never from the disk."""
    files = state.work.files
    return {file.path: (await blobs.get(file.sha256)).decode(errors="replace") for file in files}
