"""What members with tools are told each turn: only what may be new to them, for they have the rest in their thread."""

from septet.domain.runs import DIAGNOSTIC_PURPOSES
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.team.briefing import (
    Sources,
    changed_by_hand,
    environment_section,
    example_section,
    file_blocks,
    remarks,
    run_section,
    wishes_section,
)
from septet.team.challenges import decided_section
from septet.ways.iterate.briefing import (
    answer_section,
    base_sections,
    check_lines,
    facts_section,
    goal_section,
    plan_section,
    planner_sections,
    review_section,
    told_runs,
)
from septet.workspace.edits import diff_text

MOST_CODE = 24_000
"""Characters of code in one message; more is read by tools."""


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
    parts += decided_section(state)
    if state.work.version is not None:
        review = [review_section(state)] if state.work.reviews else []
        parts += [
            *files_section(state, sources, first=first),
            *review,
            failures_section(state),
            *example_section(state),
        ]
    return parts + remarks(state, "# The person says")


def reviewer_news(state: State, sources: Sources, before: Sources) -> list[str]:
    asked = [goal_section(state), plan_section(state), *wishes_section(state), *base_sections(state)]
    parts = [*asked, changes_section(state, sources, before), *answer_section(state), seen_section(state)]
    return parts + remarks(state, "# The person tried it and says")


def files_section(state: State, sources: Sources, *, first: bool) -> list[str]:
    """The files of a version that the coder has not written itself: the person's, or a team's before it."""
    if changed := changed_by_hand(state):
        return [f"# The person changed by hand\n{', '.join(changed)}: read what you need of it"]
    if not first:
        return []
    lines = [f"- {path} ({sources[path].count(chr(10))} lines)" for path in sorted(sources)]
    return ["\n".join([f"# Files of version {len(state.work.versions)}", *lines])]


def failures_section(state: State) -> str:
    """The checks, and what the runs that failed have printed; what went well is told in a line."""
    runs = [run for run in told_runs(state) if run.purpose not in (*DIAGNOSTIC_PURPOSES, "script")]
    failed = [run_section(run) for run in runs if not run.result.succeeded]
    number = state.work.version.number if state.work.version else 0
    return "\n\n".join([f"# What the runner saw of version {number}", *failed, check_lines(state)])


def seen_section(state: State) -> str:
    """All that was run, for who judges it."""
    runs = [
        run_section(run) for run in told_runs(state) if run.purpose not in (*DIAGNOSTIC_PURPOSES, "script")
    ]
    number = state.work.version.number if state.work.version else 0
    return "\n\n".join([f"# What the runner saw of version {number}", *runs, check_lines(state)])


def changes_section(state: State, sources: Sources, before: Sources) -> str:
    """New files whole, others as a difference; what would be too long is left to be read."""
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
    parts += [f"{path} was deleted" for path in sorted(before.keys() - sources.keys())]
    return "\n\n".join(parts)
