"""A chat as a document: Markdown, plain text or the log itself."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import assert_never

from septet.chat.results import report_table, status
from septet.common.text import pluralize
from septet.common.values import Value
from septet.domain.codec import encode
from septet.domain.events import (
    AnswerGiven,
    BaseEvent,
    BaseMoved,
    BaseSurveyed,
    BudgetReached,
    ChallengeDecided,
    ChatContinued,
    ChatEnded,
    ChatEvent,
    ChatHalted,
    ChatStarted,
    CheckChallenged,
    DataDescribed,
    DecisionRecorded,
    Delivered,
    DeliveryStarted,
    EnvironmentProbed,
    EvidenceFound,
    ExampleGiven,
    FactsChanged,
    GroupEvent,
    MemberBriefed,
    ModelAnswered,
    PackageEvent,
    PackagesDecided,
    PackagesInstalled,
    PackagesWanted,
    PersonSpoke,
    PlanApproved,
    PlanEvent,
    PlanProposed,
    Recorded,
    ReplyRefused,
    ReviewGiven,
    RunFinished,
    RunStarted,
    SnapshotTaken,
    StepGranted,
    StopRequested,
    TalkEvent,
    Terminated,
    ToolAnswered,
    ToolCalled,
    ToolEvent,
    TurnOpened,
    VersionWritten,
    WorkAccepted,
    WorkEvent,
)
from septet.domain.packages import wanted_words
from septet.domain.plans import check_text, plan_text
from septet.domain.reduce import fold
from septet.domain.runs import LimitName
from septet.errors import BadUsage
from septet.ports import Blobs
from septet.team.reviews import review_text
from septet.ways.assistant.policy import answer_words
from septet.workspace.snapshots import read_words, secret_words

FORMATS = ("md", "jsonl", "txt")


def export_chat(log: Sequence[Recorded], form: str) -> str:
    """The whole chat in one of FORMATS."""
    if form == "jsonl":
        return "".join(encode(recorded).decode() + "\n" for recorded in log)
    return markdown(log) if form == "md" else transcript(log)


def markdown(log: Sequence[Recorded]) -> str:
    state = fold(log)
    messages = [f"### {who}\n\n{text}" for who, text in map(speaker_and_text, log) if text]
    table = report_table(state)
    closing = f"## Report\n\n{status(state)}\n" + (f"\n```\n{table}\n```\n" if table else "")
    return "\n\n".join([f"# {state.chat}", f"> {state.goal}", *messages, closing])


def transcript(log: Sequence[Recorded]) -> str:
    """Return the transcript, the content of chat_history.txt."""
    return "".join(map(transcript_entry, log))


def transcript_entry(recorded: Recorded) -> str:
    """Return one event's part of the transcript, independent of all others: transcripts can be extended."""
    who, text = speaker_and_text(recorded)
    moment = datetime.fromtimestamp(recorded.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"[{moment}] {who}:\n{text}\n\n" if text else ""


def speaker_and_text(recorded: Recorded) -> tuple[str, str]:
    """Return who acted and what happened, as text; empty for events that are of no interest to people."""
    event = recorded.event
    if isinstance(event, ChatEvent):
        return chat_text(event)
    if isinstance(event, GroupEvent):
        return group_text(event)
    if isinstance(event, ToolEvent):
        return tool_text(event)
    if isinstance(event, PackageEvent):
        return package_text(event)
    if isinstance(event, BaseEvent):
        return base_text(event)
    return talk_text(event) if isinstance(event, TalkEvent) else work_text(event)


def base_text(event: BaseEvent) -> tuple[str, str]:
    match event:
        case BaseSurveyed():
            return ("septet", survey_text(event)) if event.kind != "empty" else ("", "")
        case EnvironmentProbed(python=python, packages=packages):
            return "septet", f"programs run with Python {python}" + (
                f", {', '.join(packages)}" if packages else ""
            )
        case BaseMoved(changed=changed, conflicts=conflicts):
            conflict = f"; in conflict with the team's change: {', '.join(conflicts)}" if conflicts else ""
            return "person", f"changed in the folder: {', '.join(file.path for file in changed)}{conflict}"
        case DeliveryStarted():
            return "", ""
        case Delivered():
            return "septet", delivery_text(event)
        case _:
            assert_never(event)


SCANNERS = {
    "": "",
    "patterns": "scans for secrets with a few patterns only (septet doctor)",
    "kingfisher": "scans for secrets with Kingfisher",
}


def survey_text(event: BaseSurveyed) -> str:
    """What the team works on, and what is hidden from it."""
    where = f"{event.root} ({f'git {event.commit[:7]}' if event.commit else event.kind})"
    dirty = f", {event.dirty_count:,} not committed" if event.dirty_count and event.kind == "git" else ""
    hidden = [f"{event.ignored:,} ignored" if event.ignored else "", secret_words(event.secrets)]
    omitted = ", ".join(filter(None, hidden))
    parts = [
        f"works on {pluralize(event.files, 'file')} of {where}{dirty}",
        f"leaves out {omitted}" if omitted else "",
        f"programs may read {', '.join(event.unmasked)}" if event.unmasked else "",
        SCANNERS[event.scanned],
        f"tests: {event.tests} ({event.tests_source})" if event.tests else "",
    ]
    return "; ".join(filter(None, parts))


def delivery_text(event: Delivered) -> str:
    files = [f"{file.path} ({file.how})" if file.how != "written" else file.path for file in event.files]
    if event.branch:
        return f"committed to the branch {event.branch}: {', '.join(files)}"
    verb = "taken back" if event.undoes else "delivered"
    patch = f"; what could not be merged is in {event.patch}" if event.patch else ""
    doubt = f"; the folder as it is now is not proven: {'; '.join(event.unproven)}" if event.unproven else ""
    return f"{verb}: {', '.join(files) or 'nothing had changed'}{patch}{doubt}"


def package_text(event: PackageEvent) -> tuple[str, str]:
    match event:
        case PackagesWanted(missing=missing):
            return "runner", f"not installed: {wanted_words(missing)}"
        case PackagesDecided(names=names, allowed=allowed, always=always, by=by):
            scope = ", and whatever else this chat will want" if always else ""
            beforehand = " (said beforehand)" if by == "flag" else ""
            text = f"{'install' if allowed else 'do not install'} {', '.join(names)}{scope}{beforehand}"
            return "septet" if by == "policy" else "person", text
        case PackagesInstalled(installation=done):
            installed = (
                f"installed {', '.join(done.installed)} in {done.seconds:.1f} s" if done.installed else ""
            )
            failed = f"could not install {', '.join(done.failed)}: {done.why}" if done.failed else ""
            return "runner", "\n".join(filter(None, [installed, failed]))
        case _:
            assert_never(event)


def tool_text(event: ToolEvent) -> tuple[str, str]:
    match event:
        case ToolCalled(by=by, name=name, arguments=arguments):
            return by, f"{name} {arguments}"
        case ToolAnswered(text=text, failed=failed, summary=summary):
            return "septet", f"{'✗ ' if failed else ''}{summary or text}"
        case AnswerGiven(by=by):
            return by, answer_words(event)
        case DataDescribed(path=path, card=card):
            return "septet", f"data: {path}\n{card}"
        case SnapshotTaken():
            is_news = event.number == 1 and (event.files or event.ignored or event.secrets)
            return ("septet", read_words(event)) if is_news else ("", "")
        case _:
            assert_never(event)


def work_text(event: WorkEvent) -> tuple[str, str]:
    match event:
        case VersionWritten(number=number, files=files, found=found):
            return (
                "person" if found else "coder",
                f"version {number}: {', '.join(file.path for file in files)}",
            )
        case RunFinished():
            return "runner", run_text(event)
        case EvidenceFound(item=item, check=check, passed=passed, detail=detail):
            return "runner", f"{'✓' if passed else '✗'} {item} ({check_text(check)}): {detail}"
        case ReviewGiven():
            return "reviewer", review_text(event) if event.overruled else ""
        case DecisionRecorded(by=by, what=what, why=why):
            return by, f"decided: {what}, because {why}"
        case ExampleGiven(code=code, source=source):
            return "exemplar", f"{code}\n(from {source})" if code else "no example"
        case RunStarted():
            return "", ""
        case _:
            assert_never(event)


def group_text(event: GroupEvent) -> tuple[str, str]:
    if isinstance(event, Terminated):
        return "manager", f"says that the task is resolved: {event.summary}"
    if isinstance(event, FactsChanged):
        changes = [
            *(f"remember: {fact}" for fact in event.change.add),
            *(f"forget: {fact}" for fact in event.change.drop),
        ]
        return event.by, "\n".join(changes)
    return "", ""


def chat_text(event: ChatEvent) -> tuple[str, str]:
    match event:
        case ChatStarted(goal=goal):
            return "person", goal
        case ChatEnded(reason=reason, detail=detail, by=by):
            # Whether it follows from the log is computed from the whole of it: one event is its author's claim.
            ended = f"{reason} ({detail})" if detail else reason
            return by or "septet", f"says that it has ended: {ended}"
        case StopRequested(by=by):
            return by, "stop"
        case ChatHalted():
            return "septet", f"an error stopped the work: {event.text}"
        case ChatContinued():
            return "person", "go on"
        case BudgetReached(by=by, why=why):
            return "septet", f"the {by} was not asked: {why}"
        case TurnOpened() | StepGranted():
            return "", ""
        case _:
            assert_never(event)


def talk_text(event: TalkEvent) -> tuple[str, str]:
    match event:
        case MemberBriefed():  # built from other events of the log
            return "", ""
        case ModelAnswered(role=role, answer=answer):
            return role, "\n\n".join(answer.texts)
        case ReplyRefused(role=role, reason=reason):
            return "septet", f"the {role}'s reply was refused: {reason}"
        case PersonSpoke(text=text):
            return "person", text
        case WorkAccepted():
            return "person", "accepted as it is"
        case PlanProposed() | PlanApproved() | CheckChallenged() | ChallengeDecided():
            return planning_text(event)
        case _:
            assert_never(event)


def planning_text(event: PlanEvent) -> tuple[str, str]:
    match event:
        case PlanApproved(by=by):
            return "person", "approved" if by == "person" else "approved (without asking)"
        case PlanProposed(plan=plan, by=by):
            return ("person", f"this plan:\n{plan_text(plan)}") if by == "person" else ("", "")
        case CheckChallenged() | ChallengeDecided():
            return event.by, challenge_words(event)
        case _:
            assert_never(event)


def challenge_words(event: CheckChallenged | ChallengeDecided) -> str:
    if isinstance(event, ChallengeDecided):
        return f"the check of {event.item} {'stands' if event.stands else 'is wrong'}: {event.reason}"
    instead = f"; instead: {event.instead}" if event.instead else ""
    return f"the check of {event.item} is wrong: {event.reason}{instead}"


def run_text(run: RunFinished) -> str:
    result = run.result
    streams = [text.rstrip() for text in (result.stdout, result.stderr) if text.strip()]
    shown = [f"```\n{text}\n```" for text in streams]
    return "\n\n".join([f"`{run.command}` → {result.ending}", *shown])


MAX_LISTED = 12


class RunOutput(Value, omit_defaults=False):
    """A run's streams, complete up to the output limit, for `--json`."""

    chat: str
    run: str
    purpose: str
    command: str
    exit_code: int
    stopped_by: LimitName | None
    stdout: str
    stderr: str


def run_named(chat: str, log: Sequence[Recorded], name: str) -> RunFinished:
    """Find a run by its id or a prefix of it; without a name, the newest run of the program."""
    runs = {event.id: event for recorded in log if isinstance(event := recorded.event, RunFinished)}
    if not runs:
        raise BadUsage(f"nothing has run in '{chat}' yet", f"see septet show {chat}")
    if not name.strip():
        return newest_run(list(runs.values()))
    wanted = " ".join(name.split()).lower()
    matching = [run for key, run in runs.items() if key.lower().startswith(wanted)]
    exact = [run for run in matching if run.id.lower() == wanted]
    if len(exact or matching) == 1:
        return (exact or matching)[0]
    if matching:
        raise BadUsage(
            f"'{name}' matches {len(matching)} runs of '{chat}'", f"use one of {run_ids(matching)}"
        )
    raise BadUsage(f"'{chat}' has no run '{name[:80]}'", f"it has {run_ids(list(runs.values()))}")


def newest_run(runs: Sequence[RunFinished]) -> RunFinished:
    programs = [run for run in runs if run.purpose == "run"]
    return (programs or runs)[-1]


def run_ids(runs: Sequence[RunFinished]) -> str:
    ids = ", ".join(f"'{run.id}'" for run in runs[-MAX_LISTED:])
    return f"{ids} (the last {MAX_LISTED} of {len(runs)})" if len(runs) > MAX_LISTED else ids


async def read_streams(run: RunFinished, blobs: Blobs) -> tuple[bytes, bytes]:
    """Return what the run wrote to stdout and to stderr."""
    result = run.result
    stdout = await blobs.get(result.stdout_blob) if result.stdout_blob else result.stdout.encode()
    stderr = await blobs.get(result.stderr_blob) if result.stderr_blob else result.stderr.encode()
    return stdout, stderr


def run_output(chat: str, run: RunFinished, streams: tuple[bytes, bytes]) -> RunOutput:
    stdout, stderr = (stream.decode(errors="replace") for stream in streams)
    return RunOutput(
        chat=chat,
        run=run.id,
        purpose=run.title,
        command=run.command,
        exit_code=run.result.exit_code,
        stopped_by=run.result.stopped_by,
        stdout=stdout,
        stderr=stderr,
    )
