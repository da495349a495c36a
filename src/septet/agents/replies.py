"""A member that thinks with a model: brief it, ask once, turn the answer into the event that settles it."""

from collections.abc import Awaitable, Callable

from septet.agents.ask import ask
from septet.common.text import join_words
from septet.domain.events import Event, FactsChanged, PlanProposed, ReplyRefused, ReviewGiven, VersionWritten
from septet.domain.facts import change_in
from septet.domain.files import FileRef, tree_of
from septet.domain.messages import Answer, Message
from septet.domain.plans import Refusal, parse_plan
from septet.domain.replies import CodeFile, code_files
from septet.domain.reviews import FindingAnswer
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.errors import BadConfig
from septet.ports import Agent, Blobs, Bus, Model, Record
from septet.team.briefing import briefing
from septet.team.evidence import heard, shortcomings
from septet.team.reviews import answers_to, judged, parse_review
from septet.team.roles import INSTRUCTIONS
from septet.team.small_form import evident_review, files_in_form, in_form, plan_in_form, review_in_form
from septet.workspace.files import path_trouble
from septet.workspace.validation import elision_of, fault_text

MAIN = "main.py"
Interpret = Callable[[State, str, Blobs], Awaitable[Event | Refusal]]


Brief = Callable[[State], Awaitable[tuple[Message, ...]]]
Settle = Callable[[State, str], Awaitable[Event | Refusal | None]]


def saying(member: RoleSpec, model: Model, bus: Bus, brief: Brief, settle: Settle | None) -> Agent:
    """One answer a turn, and the event that it leads to. What was said before a crash is used, not bought again."""

    async def turn(state: State, record: Record) -> Event | None:
        if state.turn is None or state.turn.settled:
            return None
        known = state.turn.answers[-1:]
        said = known[0] if known else await ask(member, model, bus, state, await brief(state))
        trouble = misplaced_call(said.answer) or (None if settle else empty_message(said.answer))
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


def empty_message(answer: Answer) -> Refusal | None:
    return None if answer.text.strip() else Refusal(reason="the message is empty")


def speaking(member: RoleSpec, model: Model, bus: Bus, blobs: Blobs) -> Agent:
    """An agent for a role that speaks; where evidence speaks for itself, a small reviewer need not."""
    if member.role not in INTERPRETERS or member.role not in INSTRUCTIONS:
        raise BadConfig(f"the member '{member.name}' has the role '{member.role}', which does not speak")
    interpret = INTERPRETERS[member.role]

    async def brief(state: State) -> tuple[Message, ...]:
        return briefing(member, state, await sources(state, blobs))

    async def settle(state: State, text: str) -> Event | Refusal:
        return await interpret(state, text, blobs)

    usual = saying(member, model, bus, brief, settle)

    async def turn(state: State, record: Record) -> Event | None:
        small = member.form == "small" and member.role == "reviewer"
        evident = evident_review(state) if small and state.turn and not state.turn.settled else None
        return evident or await usual(state, record)

    return turn


async def propose_plan(state: State, text: str, blobs: Blobs) -> Event | Refusal:
    again = state.refused is not None
    plan = plan_in_form(state.goal, text, lenient=again) if in_form(text) else parse_plan(text)
    return plan if isinstance(plan, Refusal) else PlanProposed(plan=plan)


async def write_version(state: State, text: str, blobs: Blobs) -> Event | Refusal:
    """Files that are sent replace those of the version before; the others stay."""
    before = {file.path: file for file in (state.version.files if state.version else ())}
    small = is_small(state, "coder")
    sent = files_in_form(state, text) if small else await files_sent(state, text, blobs)
    if isinstance(sent, Refusal):
        return sent
    answers = answers_to(state.reviews[-1] if state.reviews else None, text)
    if silence := unanswered(state, text, answers):
        return silence
    files = {**before, **{file.path: await kept(file, blobs) for file in sent}}
    ordered = tuple(files[path] for path in sorted(files))
    note = "" if small else text.split("```", 1)[0].strip()
    number, tree = len(state.versions) + 1, tree_of(ordered)
    return VersionWritten(number=number, files=ordered, tree=tree, note=note, answers=answers)


async def files_sent(state: State, text: str, blobs: Blobs) -> tuple[CodeFile, ...] | Refusal:
    """The whole files of a reply, if every one of them can become part of a version."""
    before = await sources(state, blobs)
    known = next(iter(before)) if len(before) == 1 else MAIN
    sent = code_files(text, only=known if known in before or not before else "", before=before)
    if isinstance(sent, Refusal):
        return sent
    paths = {*before, *(file.path for file in sent)}
    troubles = (path_trouble(file.path, paths) or left_out(file, before.get(file.path, "")) for file in sent)
    return next((trouble for trouble in troubles if trouble), sent)


def left_out(file: CodeFile, before: str) -> Refusal | None:
    """Code that a comment or a bare `...` stands for; a file that was like that before may stay so."""
    fault = elision_of(file.text, file.path)
    if fault is None or elision_of(before, file.path) is not None:
        return None
    return Refusal(reason=f"{fault_text(file.path, fault)}; send the file whole")


def unanswered(state: State, text: str, answers: tuple[FindingAnswer, ...]) -> Refusal | None:
    """Findings that the coder says nothing to are asked about once; who replies by a form cannot say it."""
    silent = [one.finding for one in answers if one.answer == "unanswered"]
    if not silent or in_form(text) or is_small(state, "coder") or state.refused is not None:
        return None
    lines = f"'{silent[0]}: fixed, …' or '{silent[0]}: refused, because …'"
    return Refusal(reason=f"no answer to {', '.join(silent)}; before the files, write {lines} for each")


async def give_review(state: State, text: str, blobs: Blobs) -> Event | Refusal:
    """The runner's facts win over the reviewer's opinion, and that is recorded."""
    code = "\n".join((await sources(state, blobs)).values())
    review = review_in_form(text, code) if in_form(text) else parse_review(text)
    if isinstance(review, Refusal):
        return review
    assert state.version is not None, "the floor gives the reviewer a version to look at"
    verdict, overruled = judged(state, review)
    return ReviewGiven(
        version=state.version.number,
        tree=state.version.tree,
        verdict=verdict,
        findings=review.findings,
        overruled=overruled,
        remarks=tuple(remark.text for remark in heard(state)),
        green=not shortcomings(state),
    )


INTERPRETERS: dict[str, Interpret] = {
    "planner": propose_plan,
    "coder": write_version,
    "reviewer": give_review,
}


def is_small(state: State, role: str) -> bool:
    member = state.team.member(role)
    return member is not None and member.form == "small"


async def kept(file: CodeFile, blobs: Blobs) -> FileRef:
    content = file.text.encode()
    return FileRef(path=file.path, sha256=await blobs.put(content), size=len(content))


async def sources(state: State, blobs: Blobs) -> dict[str, str]:
    """The newest version's files as text, from the log and never from the disk."""
    files = state.version.files if state.version else ()
    return {file.path: (await blobs.get(file.sha256)).decode(errors="replace") for file in files}
