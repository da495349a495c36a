"""What happens in a chat, a line for each thing: who did what, for whoever watches."""

from collections.abc import Sequence
from difflib import unified_diff

import msgspec

from septet.chat.export import base_text, challenge_words, package_text, tool_text
from septet.chat.results import control_text, ending_or_counts, run_outcome, run_title
from septet.common.text import clip, pluralize
from septet.domain.events import (
    AnswerGiven,
    BaseEvent,
    ChallengeDecided,
    CheckChallenged,
    DataDescribed,
    DecisionRecorded,
    Event,
    EvidenceFound,
    ExampleGiven,
    ModelAnswered,
    PackageEvent,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    ReplyRefused,
    ReviewGiven,
    RunFinished,
    SnapshotTaken,
    ToolAnswered,
    ToolCalled,
    VersionWritten,
    WorkAccepted,
)
from septet.domain.files import FileChange
from septet.domain.plans import CommandSucceeds, ExampleHolds, Plan, check_text, plan_text, requirements_of
from septet.domain.runs import CONTROLS
from septet.domain.state import State
from septet.team.reviews import review_text
from septet.ways.assistant.policy import answer_words

MODES = {"": "", "screen": " (on a screen)", "server": " (asked as a server)", "cell": " (in the kernel)"}
Words = tuple[str, str]
MOST_NAMED = 8
"""Files of a version that are named in its line."""


def event_line(before: Plan | None, state: State, event: Event, verbose: bool = False) -> Words:
    """Who did what in the event that led to `state`; `before` is the plan that stood before it."""
    line = None if verbose else tool_work_line(state, event)
    who, text = line or progress_line(event, verbose)
    if isinstance(event, PlanProposed) and before is not None:
        text = f"the plan, changed\n{plan_changes(before, event.plan)}"
        if event.asked and event.plan == before:
            text = "no example to hold back"
    return who, text


def progress_line(event: Event, verbose: bool = False) -> Words:
    """Who did what, briefly; nothing for what a watcher need not know."""
    match event:
        case RunFinished():
            return ("", "") if is_told_by_evidence(event) and not verbose else run_line(event)
        case VersionWritten():
            return version_line(event)
        case EvidenceFound():
            return "runner", f"{'✓' if event.passed else '✗'} {event.item} {evidence_text(event)}"
        case ReviewGiven():
            return "reviewer", review_text(event)
        case ModelAnswered(role=role, answer=answer):
            return role, answer.text if verbose or role == "manager" else ""
        case DecisionRecorded(by=by, what=what, why=why):
            return by, f"decided: {what}, because {why}"
        case ToolCalled() | ToolAnswered() | DataDescribed() | AnswerGiven() | SnapshotTaken():
            return tool_line(event, verbose)
        case _:
            return base_text(event) if isinstance(event, BaseEvent) else other_line(event)


def tool_work_line(state: State, event: Event) -> Words | None:
    """What a member with tools does, one line a call; None for what is told as it always is."""
    turn = state.floor.turn
    member = next((one for one in state.team.members if turn and one.name == turn.speaker), None)
    if turn is None or member is None or member.form != "tools":
        return None
    match event:
        case ToolAnswered(id=number, text=text, summary=summary, failed=failed):
            name = next((call.name for call in turn.calls if call.id == number), "")
            first = text.partition("\n")[0]
            return turn.speaker, summary or f"{'✗ ' if failed else ''}{f'{name}: ' if name else ''}{first}"
        case ToolCalled() | RunFinished(purpose="script"):
            return "", ""
        case ModelAnswered(role=role, answer=answer) if answer.calls:
            return role, answer.text.strip()
        case _:
            return None


def other_line(event: Event) -> Words:
    return package_text(event) if isinstance(event, PackageEvent) else talk_line(event)


def tool_line(
    event: ToolCalled | ToolAnswered | DataDescribed | AnswerGiven | SnapshotTaken, verbose: bool
) -> Words:
    match event:
        case SnapshotTaken():
            return tool_text(event)
        case ToolCalled(by=by, name=name, arguments=arguments):
            return by, f"{name} {arguments if verbose else subject(arguments)}".rstrip()
        case ToolAnswered(text=text, failed=failed, changes=changes):
            brief = changed_lines(text, changes) if changes else last_nonempty_line(text)
            brief = text.partition("\n")[0] if event.shown else brief
            shown = text if verbose or (failed and not event.shown) else brief
            return ("septet", f"{'✗ ' if failed else ''}{shown}") if shown else ("", "")
        case DataDescribed(path=path, card=card):
            return "septet", f"data: {path}\n{card}"
        case AnswerGiven(by=by):
            return by, answer_words(event)


def talk_line(event: Event) -> Words:
    match event:
        case PlanProposed(plan=plan, by=by):
            return by, f"{plan_size(plan)}\n{plan_text(plan)}"
        case PlanApproved(by=by):
            return "person", "plan approved" + (" (without asking)" if by == "flag" else "")
        case PersonSpoke(text=text):
            return "person", text
        case ExampleGiven(code=code, source=source, title=title):
            return "exemplar", f"an example from {source}: {title}" if code else "no example"
        case WorkAccepted():
            return "person", "accepted as it is"
        case CheckChallenged() | ChallengeDecided():
            return event.by, challenge_words(event)
        case ReplyRefused(role=role, reason=reason, shown=shown):
            why = reason.partition("\n")[0] if shown else reason  # what follows are the person's own files
            return "septet", f"the {role}'s reply was refused: {why}"
        case _:
            return "", ""


def plan_size(plan: Plan) -> str:
    requirements, checks = len(requirements_of(plan)), len(plan.items)
    more = f" with {pluralize(checks, 'check')}" if checks > requirements else ""
    return f"{pluralize(requirements, 'requirement')}{more}"


def plan_changes(old: Plan, new: Plan) -> str:
    """A revised plan as a diff: what the person asked for is seen at once."""
    before, after = plan_text(old).splitlines(), plan_text(new).splitlines()
    lines = [*unified_diff(before, after, n=len(before), lineterm="")][3:]  # without names and place
    return "\n".join(lines) or plan_text(new)


def version_line(event: VersionWritten) -> Words:
    names = [file.path for file in event.files]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    files = ", ".join(names[:MOST_NAMED]) + more
    who = "person" if event.found else "coder"
    return who, f"version {event.number}: {files}" + (f"\n{event.note}" if event.note else "")


def is_told_by_evidence(run: RunFinished) -> bool:
    """Whether the line of the evidence says all there is to say of a run: a check that went well, or its controls."""
    if run.purpose == "check":
        return run_outcome(run).good
    return run.purpose in ("hollow check", "check on base")


def evidence_text(event: EvidenceFound) -> str:
    """What was looked at, and what was seen."""
    match event.check:
        case ExampleHolds(call=call, value=value) if event.passed:
            return f"{call} gives {value}"
        case ExampleHolds(held=False):
            return event.detail
        case CommandSucceeds(command=command) if event.passed:
            return f"{command}: {event.detail}"
        case _:
            return f"{check_text(event.check)}: {event.detail}"


def run_line(event: RunFinished) -> Words:
    result = event.result
    if event.purpose in CONTROLS or event.purpose == "check on base":
        return "runner", f"{run_title(event)}: {control_text(event)}"
    report = result.report if event.purpose.startswith("tests") else None
    made = [change.path for change in result.changes if change.kind != "deleted"]
    facts = [ending_or_counts(event), f"{result.seconds:.2f} s", *made]
    shown = "" if result.succeeded or report else "\n" + last_nonempty_line(result.stderr or result.stdout)
    title = run_title(event)
    what = title if report else f"{title}: {event.command}{MODES[event.mode]}"
    mark = "✓" if run_outcome(event).good else "✗"
    return "runner", f"{mark} {what} → {' · '.join(facts)}{shown}"


def changed_lines(diff: str, changes: Sequence[FileChange]) -> str:
    """The files that a tool changed, and how much."""
    lines = [line for line in diff.splitlines() if not line.startswith(("+++", "---"))]
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    if not added and not removed:  # a picture, say
        return ", ".join(
            f"{change.path}: {change.kind}, {pluralize(change.size, 'byte')}" for change in changes
        )
    paths = ", ".join(change.path for change in changes)
    return f"{paths}: {pluralize(added, 'line')} added, {removed} removed"


LONGEST_SUBJECT = 80


def subject(arguments: str) -> str:
    """What a call is about: the first short text of its arguments, usually a path; not why it is made."""
    try:
        values = msgspec.json.decode(arguments, type=dict[str, object])
    except msgspec.DecodeError:  # what a model sends may be anything
        return clip(" ".join(arguments.split()), LONGEST_SUBJECT)
    texts = (value for key, value in values.items() if isinstance(value, str) and key != "reasoning")
    return next((text for text in texts if len(text) <= LONGEST_SUBJECT and text.isprintable()), "")


def last_nonempty_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""
