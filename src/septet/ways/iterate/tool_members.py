"""Planner, coder and reviewer with tools: they get only new sections in an append-only thread, and edit by calls."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate

import msgspec
from msgspec.structs import replace

from septet.agents.protection import check_overwrite
from septet.agents.questions import is_unattended, or_planner, planner_answers
from septet.agents.replies import PartRefused
from septet.agents.reply_files import files_sent, part_refused, sources
from septet.agents.run_context import SUITES, RunContext
from septet.agents.tool_context import next_version, with_edits
from septet.agents.tool_loop import ToolMember, complaints, member_messages, tool_agent, untold
from septet.common.values import Value
from septet.domain.events import (
    Event,
    MemberBriefed,
    PlanProposed,
    ReplyRefused,
    ToolAnswered,
    ToolCalled,
    VersionWritten,
)
from septet.domain.files import FileChange, FileRef
from septet.domain.messages import Message, ToolOffer
from septet.domain.plans import Judged, Refusal
from septet.domain.replies import CodeFile, Trouble, code_blocks, is_change, named_blocks
from septet.domain.runs import DIAGNOSTIC_PURPOSES
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Model
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
from septet.team.challenges import challenge_decisions_section, challenge_refusal, read_challenge
from septet.team.evidence import other_shortcomings
from septet.team.reviews import answers_to
from septet.tools.editing import editing_tools
from septet.tools.reading import NO_MATCH, reading_tools
from septet.tools.registry import Toolbox, allowed_tools, known_tools, with_others
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
    questions_section,
    review_section,
    told_runs,
)
from septet.ways.iterate.replies import INTERPRETERS, unanswered_refusal
from septet.ways.prompts import prompt_text
from septet.ways.way import MemberContext
from septet.workspace.changes import file_changes
from septet.workspace.edits import diff_text
from septet.workspace.files import in_thread
from septet.workspace.listing import LOOKED_INTO, FolderTexts

MOST_CODE, MOST_FOUND = 24_000, 16_000
"""Characters in one message of code, and of what another member found last; members read more by tools."""


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
    around = [] if member.role == "reviewer" else [environment_section(state)]
    return [*parts, *around, *facts_section(state), *last]


def coder_news(state: State, sources: Sources, *, first: bool) -> list[str]:
    parts = [goal_section(state), plan_section(state), *wishes_section(state), *base_sections(state)]
    parts += challenge_decisions_section(state) + questions_section(state, "coder")
    if first and state.work.version is None:
        parts += read_section(state)
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
    asked += questions_section(state, "reviewer")
    parts = [*asked, changes_section(state, sources, before), *answer_section(state), seen_section(state)]
    return parts + remarks_section(state, "# The person tried it and says")


def read_section(state: State) -> list[str]:
    """What the planner found, as it was told: the coder need not look for it again.

    It stands in each request of the coder: of each file there is what the planner read last; of all before only a name.
    """
    planner = state.team.member("planner")
    readers = {tool.name for tool in reading_tools()}
    made = {said.id: said for said in state.talk.messages if isinstance(said, ToolCalled)}
    found = {
        said.text: (path_read(call) or said.text, said)
        for said in state.talk.messages
        if isinstance(said, ToolAnswered) and not said.failed and said.text != NO_MATCH
        if planner and (call := made[said.id]).by == planner.name and call.name in readers
    }
    last = [*dict(found.values()).values()]
    sizes = accumulate(len(said.text) for said in reversed(last))
    told = last[len(last) - sum(size <= MOST_FOUND for size in sizes) :]
    named = [f"- {said.summary}" for _, said in found.values() if said not in told]
    parts = ["\n".join(["The planner also looked at this, before:", *named])] if named else []
    parts += [f"## {said.summary}\n{said.text}" for said in told]
    return ["\n\n".join(["# What the planner found, with line numbers", *parts])] if parts else []


class ReadArguments(Value):
    path: str = ""


def path_read(call: ToolCalled) -> str:
    """The file that a call reads; nothing for other calls, and for one that could not be read."""
    if call.name != "read":
        return ""
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(call.arguments, type=ReadArguments).path
    return ""


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
    open_points = [f"Not done yet: {'; '.join(found)}"] if (found := other_shortcomings(state)) else []
    return "\n\n".join(
        [f"# What the runner saw of version {number}", *failed, check_lines(state), *open_points]
    )


def seen_section(state: State) -> str:
    """All results, for the reviewer: the program's own output and what failed; of tests that passed their number."""
    runs = [
        f"## {run.title}: {run.result.report.counts}"
        if run.purpose in SUITES and run.result.succeeded
        else run_section(run)
        for run in told_runs(state)
        if run.purpose not in (*DIAGNOSTIC_PURPOSES, "script")
        if run.purpose in ("run", *SUITES) or not run.result.succeeded
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
        return await briefing_event(spec, state, run_context)

    async def settle(state: State, text: str) -> Event | Refusal:
        if spec.role == "coder":
            return await write_edits(state, text, run_context)
        said = await INTERPRETERS[spec.role](state, text, run_context.blobs)
        return unchecked_refusal(state, text, said) or said

    return tool_agent(ToolMember(spec, model, run_context, tools, brief, settle, answerer(spec, context)))


def answerer(spec: RoleSpec, context: MemberContext) -> Agent:
    """Who answers what the member asks: the person or, for others than the planner, the planner."""
    planner = context.team.member("planner")
    if planner is None or planner.form != "tools" or planner.name == spec.name:
        return context.person

    async def messages(state: State) -> tuple[Message, ...]:
        return member_messages(state, planner.name)

    async def offers() -> tuple[ToolOffer, ...]:
        return tuple(tool.offer() for tool in (await tools_for("planner", context)).values())

    model = context.open_model(planner.model)
    answers = planner_answers(planner, model, context.run_context.bus, messages, offers)
    return or_planner(context.person, answers)


UNCHECKED = (
    "no requirement has a check: give each one a line `check: …` with an input for which a wrong program fails "
    "(`check: judged` says that only a reviewer can tell)"
)


def unchecked_refusal(state: State, text: str, said: Event | Refusal) -> Refusal | None:
    """Ask once for the checks of a plan without any."""
    if not isinstance(said, PlanProposed) or complaints(state) or "check" in text.lower():
        return None
    unchecked = all(isinstance(item.check, Judged) for item in said.plan.items)
    return Refusal(reason=UNCHECKED) if unchecked else None


async def tools_for(role: str, context: MemberContext) -> Toolbox:
    """The tools of a member: all for the coder; for planner and reviewer those that name their role."""
    own = known_tools([*reading_tools(), *editing_tools(), *running_tools(), *asking_tools()])
    known = with_others(own, await context.server_tools())
    if role == "coder":
        return allowed_tools(known, role)
    named = {name: one for name, one in known.items() if role in one.roles}
    return {name: one for name, one in named.items() if not (one.asks and is_unattended(context.team))}


async def briefing_event(spec: RoleSpec, state: State, run_context: RunContext) -> MemberBriefed:
    """Brief the member with what is new, the first time also with its role prompt."""
    told = member_messages(state, spec.name)
    texts, before = await sources(state, run_context.blobs), await earlier_texts(state, run_context)
    sections = tool_sections(spec, state, texts, before, first=not told)
    sections = untold(told, [added_to_plan(told, section) or section for section in sections])
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


PLAN_TOLD = re.compile(r"^# Plan\n(?P<items>.*?)(?P<run>\nrun: [^\n]*)?(?:\n\n|\Z)", re.DOTALL | re.MULTILINE)


def added_to_plan(messages: Sequence[Message], section: str) -> str:
    """Of a plan that only goes on where the member's plan ended, what is new; else nothing."""
    now = PLAN_TOLD.match(section)
    told = [found for one in messages if one.role == "user" for found in PLAN_TOLD.finditer(one.text)]
    if now is None or not told:
        return ""
    added = now["items"].removeprefix(f"{told[-1]['items']}\n")
    same_run = [one["run"] for one in (*told[-1:], now)] == [now["run"]] * 2
    return (
        f"# Added to the plan\n{added}{'' if same_run else now['run'] or ''}" if added != now["items"] else ""
    )


def system_text(spec: RoleSpec) -> str:
    own = prompt_text(PACKAGE, "coder.tools") if spec.role == "coder" else ""
    part = own or prompt_text(PACKAGE, spec.role) + prompt_text(PACKAGE, "tools")
    return "\n".join(filter(None, [part, spec.instructions]))


async def earlier_texts(state: State, run_context: RunContext) -> dict[str, str]:
    """What the newest version is compared with: the one that was reviewed last, and the person's files as they were."""
    shown: dict[str, FileRef] = {}
    for file in shown_files(state):
        shown.setdefault(file.path, file)
    version = reviewed_version(state)
    files = {**shown, **{file.path: file for file in (version.files if version else ())}}
    blobs = run_context.blobs
    texts = {path: (await blobs.get(file.sha256)).decode(errors="replace") for path, file in files.items()}
    unseen = {file.path for file in state.work.files} - texts.keys()
    return await run_context.base_texts(unseen) | texts


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
        sent = await files_in(edited, text, refused, run_context)
        if isinstance(sent, Refusal):
            return sent
        known = {file.path for file in edited.work.files}
        changes = await file_changes({file.path: file.text for file in sent}, known, run_context.blobs)
    return finish_version(state, text, next_version(edited, changes, ""))


async def files_in(
    edited: State, text: str, refused: ReplyRefused, run_context: RunContext
) -> tuple[CodeFile, ...] | Refusal:
    """The files of a reply; files of the project may be changed piece by piece, and replaced if they were read."""
    base = await texts_named(edited, text, run_context)
    sent = await files_sent(edited, text, run_context.blobs, refused, parses=True, base=base)
    kept = [file.path for file in (sent.kept if isinstance(sent, PartRefused) else ())]
    paths = kept if isinstance(sent, Refusal) else [file.path for file in sent]
    ours = {file.path for file in (*edited.work.files, *refused.kept)} | only_changed(text)
    new = [path for path in paths if path not in ours]
    unread = [path for path in new if await check_overwrite(edited, [path], run_context) is not None]
    if not unread:
        return sent
    reason = f"{', '.join(unread)}: there already, and not read by you; read it, or use edit"
    if isinstance(sent, PartRefused):
        missing = (*sent.missing, *unread)
        others = tuple(file for file in sent.kept if file.path not in unread)
        return replace(sent, reason=f"{reason}\n{sent.reason}", kept=others, missing=missing)
    assert not isinstance(sent, Refusal), "nothing of a refusal is new"
    faults = [Trouble(reason=reason, path=path) for path in unread]
    return await part_refused(faults, [one for one in sent if one.path not in unread], run_context.blobs)


async def refused_files(edited: State, text: str, run_context: RunContext) -> ReplyRefused:
    """What refused replies of this turn left: files that need not come again, and those that have to."""
    refused = ReplyRefused(role="", reason="")
    answers = edited.floor.turn.answers if edited.floor.turn else ()
    earlier = [said.answer.text for said in answers if not said.answer.calls and said.answer.text != text]
    for reply in filter(contains_files, earlier):
        sent = await files_in(edited, reply, refused, run_context)
        if isinstance(sent, PartRefused):
            refused = replace(refused, kept=sent.kept, missing=sent.missing)
    calls = edited.floor.turn.calls if edited.floor.turn else ()
    results = [edited.talk.tool_results[call.id] for call in calls if call.id in edited.talk.tool_results]
    edits = {change.path for result in results for change in result.changes}
    return replace(refused, missing=tuple(path for path in refused.missing if path not in edits))


async def texts_named(state: State, reply: str, run_context: RunContext) -> dict[str, str]:
    """The files of the project that the reply names, as far as members may read them."""
    named = {block.path for block in named_blocks(reply)}
    hidden = await run_context.hidden_paths(state)

    def look() -> dict[str, str]:
        texts = FolderTexts({}, run_context.workspace, hidden, LOOKED_INTO)
        found = {path: texts.get(path) for path in named}
        return {path: text for path, text in found.items() if text is not None}

    return await in_thread(look) if named else {}


def only_changed(text: str) -> set[str]:
    """The files that a reply changes piece by piece: what it quotes of them it has seen."""
    blocks = named_blocks(text)
    return {one.path for one in blocks if is_change(one)} - {one.path for one in blocks if not is_change(one)}


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
        silence = unanswered_refusal(state, text, answers) if text else None
        if silence := silence or challenge_refusal(state, text):
            return Refusal(reason=f"{silence.reason}{AGAIN}") if contains_files(text) else silence
        if before is not None and (before.tree, before.deleted) == (version.tree, version.deleted):
            return Refusal(reason=UNCHANGED)
    if not version.files and not version.deleted:
        return Refusal(reason=UNCHANGED)
    note = text.split("```", 1)[0].strip()
    return replace(version, number=len(state.work.versions) + 1, note=note, answers=answers)
