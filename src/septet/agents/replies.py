"""A member that asks a model once per turn: builds the prompt, asks, and turns the answer into an event."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from septet.agents.ask import ask_model
from septet.common.text import join_words
from septet.domain.events import Event, FactsChanged, ReplyRefused
from septet.domain.facts import change_in
from septet.domain.files import FileRef
from septet.domain.messages import Answer, Message
from septet.domain.plans import Refusal
from septet.domain.replies import NO_CODE, CodeFile, Trouble, read_files
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Blobs, Bus, Model, Record
from septet.workspace.files import path_problem
from septet.workspace.validation import elision_of, fault_text, file_fault, fragment_fault

MAIN = "main.py"
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


LEFT_OUT = re.compile(r"^\W*left out[*:]*\s+(?P<paths>.+)$", re.IGNORECASE | re.MULTILINE)


async def files_sent(
    state: State,
    text: str,
    blobs: Blobs,
    refused: ReplyRefused | None = None,
    *,
    parses: bool = False,
    base: Mapping[str, str] = MappingProxyType({}),
) -> tuple[CodeFile, ...] | Refusal:
    """The complete files of a reply and of one `refused` before it, if each can become part of a version.

    With `parses`, Python files must be valid Python. A reply may change the files of `base`, too.
    """
    written = await sources(state, blobs)
    before = {**base, **written}
    kept = await texts_of(refused.kept if refused else (), blobs)
    missing = refused.missing if refused else ()
    read = read_files(text, only=only_file(written, kept, missing), before={**before, **kept})
    paths = {*before, *kept, *(file.path for file in read.files)}
    faults = [*read.troubles]
    for file in read.files:
        old = before.get(file.path, "")
        named = None if file.path in before else path_problem(file.path, paths)
        found = named or unsound_refusal(file, old, parses=parses)
        faults += [Trouble(reason=found.reason, path=file.path)] if found else []
    said = {one.path for one in (*read.files, *read.troubles)}
    said |= {path for path in missing if is_left_out(path, text)}
    faults += [Trouble(reason=NOT_SENT.format(path), path=path) for path in missing if path not in said]
    bad = {fault.path for fault in faults}
    sound = {**kept, **{file.path: file.text for file in read.files}}
    files = tuple(CodeFile(path=path, text=text) for path, text in sound.items() if path not in bad)
    if not faults and not files:
        return Refusal(reason=NO_CODE)
    return await part_refused(faults, files, blobs) if faults else files


NOT_SENT = "'{0}' was refused and has not come again; send it, or write a line 'left out: {0}'"


def only_file(before: Mapping[str, str], kept: Mapping[str, str], missing: Sequence[str]) -> str:
    """The path of a single code block without a name."""
    if kept or missing:
        return missing[0] if len(missing) == 1 else ""
    return next(iter(before)) if len(before) == 1 else MAIN if MAIN in before or not before else ""


def is_left_out(path: str, text: str) -> bool:
    return any(path in found["paths"] for found in LEFT_OUT.finditer(text))


async def part_refused(faults: Sequence[Trouble], files: Sequence[CodeFile], blobs: Blobs) -> PartRefused:
    """Build a refusal with all faults, and keep the files that need not be sent again."""
    reasons = list(dict.fromkeys(fault.reason for fault in faults))
    missing = sorted({fault.path for fault in faults if fault.path and path_problem(fault.path) is None})
    named = join_words([file.path for file in files])
    rest = f"{named} {'is' if len(files) == 1 else 'are'} kept: send only what is wrong or missing."
    return PartRefused(
        reason="\n\n".join(["\n".join(reasons), *([rest] if files else [])]),
        kept=tuple([await keep_file(file, blobs) for file in files]),
        missing=tuple(missing),
    )


def unsound_refusal(file: CodeFile, before: str, *, parses: bool) -> Refusal | None:
    """Refuse a file with a placeholder for code, or with invalid code, unless it was like that before."""
    find = file_fault if parses and file.path.endswith(".py") else elision_of
    fault = find(file.text, file.path)
    if fault is None and parses and before and file.path.endswith(".py"):
        fault = fragment_fault(file.text, before)
        return Refusal(reason=FRAGMENT.format(fault_text(file.path, fault), file.path)) if fault else None
    if fault is None or (before and find(before, file.path) is not None):
        return None
    return Refusal(reason=f"{fault_text(file.path, fault)}; send the file whole")


FRAGMENT = "{0}; send the file whole, or one function in a block that starts with ```python {1}::NAME"


async def texts_of(files: Iterable[FileRef], blobs: Blobs) -> dict[str, str]:
    return {file.path: (await blobs.get(file.sha256)).decode(errors="replace") for file in files}


async def keep_file(file: CodeFile, blobs: Blobs) -> FileRef:
    content = file.text.encode()
    return FileRef(path=file.path, sha256=await blobs.put(content), size=len(content))


async def sources(state: State, blobs: Blobs) -> dict[str, str]:
    """The newest version's files as text, from blobs and not from the disk; a run may have made some that are none."""
    return {
        path: text for path, text in (await texts_of(state.work.files, blobs)).items() if "\0" not in text
    }
