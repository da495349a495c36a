"""Planner, coder and reviewer with tools: they get only new sections in an append-only thread, and edit by calls."""

from collections.abc import Iterator
from hashlib import sha256

from msgspec.structs import replace

from septet.agents.protection import check_overwrite
from septet.agents.replies import PartRefused, files_sent, sources
from septet.agents.run_context import RunContext
from septet.agents.tool_context import files_read, next_version, with_edits
from septet.agents.tool_loop import ToolMember, complaints, member_messages, tool_agent, untold
from septet.domain.events import (
    Event,
    MemberBriefed,
    PlanProposed,
    ReplyRefused,
    ToolAnswered,
    VersionWritten,
)
from septet.domain.files import FileChange, FileRef
from septet.domain.plans import Refusal
from septet.domain.replies import code_blocks
from septet.domain.runs import DIAGNOSTIC_PURPOSES
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Blobs, Model
from septet.team.briefing import (
    Sources,
    base_sections,
    changed_by_hand,
    environment_section,
    example_section,
    file_blocks,
    remarks_section,
    run_section,
    wishes_section,
)
from septet.team.challenges import challenge_decisions_section, read_challenge
from septet.team.evidence import shortcomings
from septet.team.reviews import answers_to
from septet.tools.editing import editing_tools
from septet.tools.reading import reading_tools
from septet.tools.registry import Toolbox, allowed_tools, known_tools
from septet.tools.running import asking_tools, running_tools
from septet.ways.iterate.briefing import (
    PACKAGE,
    answer_section,
    check_lines,
    facts_section,
    goal_section,
    pictures,
    plan_section,
    planner_sections,
    review_section,
    told_runs,
)
from septet.ways.iterate.replies import INTERPRETERS, unanswered_refusal
from septet.ways.prompts import prompt_text
from septet.ways.way import MemberContext
from septet.workspace.changes import file_changes
from septet.workspace.edits import diff_text

MOST_CODE = 24_000
"""Characters of code in one message; members read more by tools."""


def tool_sections(
    member: RoleSpec, state: State, sources: Sources, before: Sources, *, first: bool
) -> list[str]:
    """The sections of a turn; who was told one already, word for word, is not told it again.

    `before` is what the newest version is compared with; `first` is whether the member has been told nothing yet.
    """
    match member.role:
        case "coder":
            parts = coder_news(state, sources, first=first)
        case "reviewer":
            parts = reviewer_news(state, sources, before)
        case _:
            parts = planner_sections(state, sources)
    refused = state.talk.refusal_of(member.name)
    last = [f"# Your last reply could not be used\n{refused.reason}"] if refused else []
    return [*parts, *environment_section(state), *facts_section(state), *last]


def coder_news(state: State, sources: Sources, *, first: bool) -> list[str]:
    parts = [goal_section(state), plan_section(state), *wishes_section(state), *base_sections(state)]
    parts += challenge_decisions_section(state)
    if state.work.version is not None:
        review = [review_section(state)] if state.work.reviews else []
        parts += [
            *files_section(state, sources, first=first),
            *review,
            failures_section(state),
            *example_section(state),
        ]
    return parts + remarks_section(state, "# The person says")


def reviewer_news(state: State, sources: Sources, before: Sources) -> list[str]:
    asked = [goal_section(state), plan_section(state), *wishes_section(state), *base_sections(state)]
    parts = [*asked, changes_section(state, sources, before), *answer_section(state), seen_section(state)]
    return parts + remarks_section(state, "# The person tried it and says")


def files_section(state: State, sources: Sources, *, first: bool) -> list[str]:
    """The files of a version that the coder has not written itself: the person's, or a team's before it."""
    if changed := changed_by_hand(state):
        return [f"# The person changed by hand\n{', '.join(changed)}: read what you need of it"]
    if not first:
        return []
    lines = [f"- {path} ({sources[path].count(chr(10))} lines)" for path in sorted(sources)]
    return ["\n".join([f"# Files of version {len(state.work.versions)}", *lines])]


def failures_section(state: State) -> str:
    """The results of the checks, and the output of failed runs."""
    runs = [run for run in told_runs(state) if run.purpose not in (*DIAGNOSTIC_PURPOSES, "script")]
    failed = [run_section(run) for run in runs if not run.result.succeeded]
    number = state.work.version.number if state.work.version else 0
    open_points = [f"Not done yet: {'; '.join(found)}"] if (found := shortcomings(state)) else []
    return "\n\n".join(
        [f"# What the runner saw of version {number}", *failed, check_lines(state), *open_points]
    )


def seen_section(state: State) -> str:
    """All runs and results, for the reviewer."""
    runs = [
        run_section(run) for run in told_runs(state) if run.purpose not in (*DIAGNOSTIC_PURPOSES, "script")
    ]
    number = state.work.version.number if state.work.version else 0
    return "\n\n".join([f"# What the runner saw of version {number}", *runs, check_lines(state)])


def changes_section(state: State, sources: Sources, before: Sources) -> str:
    """New files in full, others as diffs; the member must read what would be too long."""
    number = state.work.version.number if state.work.version else 0
    parts = [f"# Code of version {number}"]
    room = MOST_CODE
    for path in sorted(sources):
        if before.get(path) == sources[path]:
            continue
        changed = path in before
        text = diff_text(path, before[path], sources[path]) if changed else ""
        part = f"```diff\n{text}```" if changed else file_blocks(sources, [path])[0]
        room -= len(part)
        parts.append(part if room >= 0 else f"{path} was {'changed' if changed else 'written'}: read it")
    parts += [f"{path} was deleted" for path in sorted(deleted_paths(state, sources, before))]
    return "\n\n".join(parts)


def deleted_paths(state: State, sources: Sources, before: Sources) -> set[str]:
    """Over a base a version has only what was changed: what is not in it need not be gone."""
    if state.base is None or state.work.version is None:
        return before.keys() - sources.keys()
    reviewed = reviewed_version(state)
    return set(state.work.version.deleted) - set(reviewed.deleted if reviewed else ())


UNCHANGED = "You have changed nothing. Use edit, write or delete; if nothing needs to be changed, say so again and why."


def tool_role_agent(spec: RoleSpec, model: Model, context: MemberContext) -> Agent:
    """An agent whose model can call tools."""
    run_context = context.run_context

    async def tools() -> Toolbox:
        return await tools_for(spec.role, context)

    async def brief(state: State) -> MemberBriefed:
        return await briefing_event(spec, state, run_context.blobs)

    async def settle(state: State, text: str) -> Event | Refusal:
        if spec.role == "coder":
            return await write_edits(state, text, run_context)
        said = await INTERPRETERS[spec.role](state, text, run_context.blobs)
        return unchecked_refusal(state, text, said) or said

    return tool_agent(ToolMember(spec, model, run_context, tools, brief, settle, context.person))


UNCHECKED = (
    "no requirement has a check: give each one a line `check: …` with an input for which a wrong program fails "
    "(`check: judged` says that only a reviewer can tell)"
)


def unchecked_refusal(state: State, text: str, said: Event | Refusal) -> Refusal | None:
    """Ask once for the checks of a plan without any."""
    if not isinstance(said, PlanProposed) or complaints(state) or "check" in text.lower():
        return None
    return Refusal(reason=UNCHECKED)


async def tools_for(role: str, context: MemberContext) -> Toolbox:
    """The tools of a member: all for the coder; for planner and reviewer those that name their role."""
    known = known_tools([*reading_tools(), *editing_tools(), *running_tools(), *asking_tools()])
    if role == "coder":
        return allowed_tools({**known, **await context.server_tools()}, role)
    return {name: one for name, one in known.items() if role in one.roles}


async def briefing_event(spec: RoleSpec, state: State, blobs: Blobs) -> MemberBriefed:
    """Brief the member with what is new, the first time also with its role prompt."""
    told = member_messages(state, spec.name)
    texts, before = await sources(state, blobs), await earlier_texts(state, blobs)
    sections = untold(told, tool_sections(spec, state, texts, before, first=not told))
    seen = pictures(state) if spec.role == "reviewer" else {}
    new = {path: image for path, image in seen.items() if not any(image in one.images for one in told)}
    if new:
        sections.append(f"# Pictures that the program made, as shown\n{', '.join(new)}")
    return MemberBriefed(
        member=spec.name,
        text="\n\n".join(sections) or "Go on.",
        images=tuple(new.values()),
        system="" if told else system_text(spec),
    )


def system_text(spec: RoleSpec) -> str:
    own = prompt_text(PACKAGE, "coder.tools") if spec.role == "coder" else ""
    part = own or prompt_text(PACKAGE, spec.role) + prompt_text(PACKAGE, "tools")
    return "\n".join(filter(None, [part, spec.instructions]))


async def earlier_texts(state: State, blobs: Blobs) -> dict[str, str]:
    """What the newest version is compared with: the one that was reviewed last, and the person's files as they were."""
    shown: dict[str, FileRef] = {}
    for file in shown_files(state):
        shown.setdefault(file.path, file)
    version = reviewed_version(state)
    files = {**shown, **{file.path: file for file in (version.files if version else ())}}
    return {path: (await blobs.get(file.sha256)).decode(errors="replace") for path, file in files.items()}


def reviewed_version(state: State) -> VersionWritten | None:
    number = state.work.reviews[-1].version if state.work.reviews else 0
    return next((one for one in state.work.versions if one.number == number), None)


def shown_files(state: State) -> Iterator[FileRef]:
    """The person's files that calls read or changed, with their content then, the oldest first."""
    for said in state.talk.messages:
        if isinstance(said, ToolAnswered):
            yield from said.shown


async def write_edits(state: State, text: str, run_context: RunContext) -> Event | Refusal:
    """The version of a turn: the edits of its calls, and complete files in the final reply."""
    edited = with_edits(state)
    if edited is state and not contains_files(text) and (said := read_challenge(state, "coder", text)):
        return said
    changes: tuple[FileChange, ...] = ()
    refused = await refused_files(edited, text, run_context)
    if refused.kept or refused.missing or contains_files(text) or (edited is state and "```" in text):
        base = await texts_read(state, run_context)
        sent = await files_sent(edited, text, run_context.blobs, refused, parses=True, base=base)
        if isinstance(sent, Refusal):
            return sent
        known = {file.path for file in edited.work.files}
        new = [file.path for file in sent if file.path not in known]
        if await check_overwrite(state, new, run_context) is not None:
            return Refusal(
                reason=f"{', '.join(new)}: there already, and not read by you; read it, or use edit"
            )
        changes = await file_changes({file.path: file.text for file in sent}, known, run_context.blobs)
    return finish_version(state, text, next_version(edited, changes, ""))


async def refused_files(edited: State, text: str, run_context: RunContext) -> ReplyRefused:
    """What refused replies of this turn left: files that need not come again, and those that have to."""
    refused = ReplyRefused(role="", reason="")
    answers = edited.floor.turn.answers if edited.floor.turn else ()
    earlier = [said.answer.text for said in answers if not said.answer.calls and said.answer.text != text]
    base = await texts_read(edited, run_context) if any(map(contains_files, earlier)) else {}
    for reply in filter(contains_files, earlier):
        sent = await files_sent(edited, reply, run_context.blobs, refused, parses=True, base=base)
        if isinstance(sent, PartRefused):
            refused = replace(refused, kept=sent.kept, missing=sent.missing)
    calls = edited.floor.turn.calls if edited.floor.turn else ()
    results = [edited.talk.tool_results[call.id] for call in calls if call.id in edited.talk.tool_results]
    edits = {change.path for result in results for change in result.changes}
    return replace(refused, missing=tuple(path for path in refused.missing if path not in edits))


async def texts_read(state: State, run_context: RunContext) -> dict[str, str]:
    """The person's files that the member has read and that are still as it knows them: its reply may change these."""
    read = files_read(state, state.floor.turn.speaker if state.floor.turn else "")
    contents = {path: await run_context.content(path) or b"" for path in read}
    return {
        path: content.decode(errors="replace")
        for path, content in contents.items()
        if sha256(content).hexdigest() == read[path]
    }


def contains_files(text: str) -> bool:
    blocks = code_blocks(text)
    return isinstance(blocks, Refusal) or any(block.path for block in blocks)


AGAIN = "\nThe files of that reply are not taken yet: send them again with it, or use edit and write."


def finish_version(state: State, text: str, version: VersionWritten) -> VersionWritten | Refusal:
    """Complete the version, or refuse once if findings are unanswered or nothing was changed."""
    spoken = [said.answer.text for said in state.floor.turn.answers] if state.floor.turn else []
    answers = answers_to(state.work.reviews[-1] if state.work.reviews else None, *spoken, text)
    before = state.work.version
    if not complaints(state):
        if silence := unanswered_refusal(state, text, answers) if text else None:
            return Refusal(reason=f"{silence.reason}{AGAIN}") if contains_files(text) else silence
        if before is not None and (before.tree, before.deleted) == (version.tree, version.deleted):
            return Refusal(reason=UNCHANGED)
    if not version.files and not version.deleted:
        return Refusal(reason=UNCHANGED)
    note = text.split("```", 1)[0].strip()
    return replace(version, number=len(state.work.versions) + 1, note=note, answers=answers)
