"""For pipelines: a goal or a review without questions and downloads, with results as JSON, JUnit and SARIF."""

import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Literal
from urllib.parse import quote
from xml.etree import ElementTree as ET

import msgspec
from anyio import to_thread
from msgspec.structs import replace

from septet.chat.progress import event_line
from septet.chat.results import Result
from septet.common.temporary import temporary_folder
from septet.common.values import Value
from septet.domain.events import Delivered, Recorded
from septet.domain.plans import Refusal
from septet.domain.reduce import reduce
from septet.domain.reviews import Finding, Severity
from septet.domain.runs import Job, RunResult
from septet.domain.state import State
from septet.domain.teams import Budget, TeamSpec
from septet.errors import BadUsage, ModelFailed
from septet.ports import Sandbox
from septet.settings.group_chats import without_models
from septet.settings.team_files import check_team, load_team
from septet.team.reviews import FINDING, SEVERITIES, finding_from, parse_review
from septet.wiring.session import Session

Proof = Literal["regression", "failing test", "not shown", "claim"]
Progress = Callable[[str], None]
MAX_DIFF_LENGTH = 200_000
GIT_SECONDS = 60.0
PROVEN: tuple[Proof, ...] = ("regression", "failing test")
LEVELS: dict[Severity, str] = {"must": "error", "should": "warning", "nice": "note"}
PLACE = re.compile(r"(?P<path>[\w./ -]+?\.\w+):(?P<line>\d{1,7})")
TEST_BLOCK = re.compile(r"^[ \t]*```[^\n]*\n(?P<code>.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
REVIEW_GOAL = """Review this change. The folder holds the project after the change. Find what the change breaks or does
wrong; say nothing of style. Look at the code around it, and run programs where that shows something.

End with a review in exactly this form, and nothing after it:

verdict: revise
- [must] (path/file.py:12): what is wrong, and when
```python
# a whole pytest file that fails because of this finding, and would pass without it; leave the block out if none can
```

[must] is a defect, [should] a risk, [nice] a wish; `verdict: accept` alone means that you found nothing.
At most five findings. A finding whose test fails here counts as proven; others count as claims.

The change:

"""


class ReviewFinding(Value, omit_defaults=False):
    """A finding of a review. `proof` says what became of its test: it failed here and passed before the change
    (regression), failed in both (failing test), did not fail (not shown), or there is none (claim).
    """

    severity: Severity
    text: str
    path: str = ""
    line: int = 0
    proof: Proof = "claim"
    detail: str = ""
    test: str = ""


class ReviewReport(Value, omit_defaults=False):
    """What `septet review --json` prints."""

    chat: str
    verdict: str
    findings: tuple[ReviewFinding, ...]
    cost: float
    type: str = "review"


class Change(Value):
    """The project before and after a change, in folders of their own, and the change as a diff."""

    before: str
    after: str
    diff: str


class CiOptions(Value):
    """Who works, and how much they may use."""

    team: str = "iterate"
    model: str = ""
    rounds: int | None = None
    cost: float | None = None
    seconds: float | None = None

    def applied_to(self, budget: Budget) -> Budget:
        return replace(
            budget,
            rounds=self.rounds or budget.rounds,
            cost=budget.cost if self.cost is None else self.cost,
            seconds=budget.seconds if self.seconds is None else self.seconds,
        )


async def unattended_team(session: Session, options: CiOptions) -> TeamSpec:
    """A team that asks nothing and installs nothing."""
    team = check_team(load_team(options.team))
    team = await session.with_models(without_models(team) if options.model else team, options.model)
    budget = options.applied_to(team.budget)
    return replace(team, approve="auto", packages="off", stepwise=False, consult=False, budget=budget)


async def run_unattended(
    session: Session, goal: str, team: TeamSpec, folder: Path | None, tell: Progress, is_copy: bool = False
) -> State:
    """Run a chat to its end; proven work is delivered into the folder. A delivery into a copy is not told."""
    sandbox = await session.sandbox()
    chat = await session.start(goal, team, folder)
    state = await session.state(chat)
    async for recorded in session.perform(chat, sandbox):
        hidden = is_copy and isinstance(recorded.event, Delivered)
        state = reduce(state, recorded) if hidden else tell_event(state, recorded, tell)
    return await session.state(chat)


def tell_event(state: State, recorded: Recorded, tell: Progress) -> State:
    after = reduce(state, recorded)
    who, text = event_line(state.plan.current, after, recorded.event)
    if text:
        tell(f"{who}: {text}")
    return after


def git(folder: Path, *arguments: str, data: bytes | None = None) -> bytes:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            input=data,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise BadUsage(
            f"git {arguments[0]} failed ({error})", "is git here, and is this a repository?"
        ) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[:300]
        raise BadUsage(f"git {arguments[0]} failed ({said})", "name a commit or a branch that exists")
    return done.stdout


def commit_of(folder: Path, name: str) -> str:
    """A commit by its name; a name that git would read as an option is none."""
    return git(folder, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}").decode().strip()


def export_commit(folder: Path, commit: str, target: Path) -> None:
    target.mkdir()
    with tarfile.open(fileobj=io.BytesIO(git(folder, "archive", "--format=tar", commit))) as archive:
        archive.extractall(target, filter="data")


def branch_change(folder: Path, base: str, head: str, made: Path) -> Change:
    """What a branch changes since it left another."""
    tip = commit_of(folder, head)
    fork = git(folder, "merge-base", commit_of(folder, base), tip).decode().strip()
    diff = git(folder, "diff", "--no-ext-diff", "--no-textconv", "--no-color", fork, tip)
    export_commit(folder, fork, made / "before")
    export_commit(folder, tip, made / "after")
    return change_of(made, diff)


def patch_change(folder: Path, patch: bytes | None, made: Path) -> Change:
    """What a patch changes in the commit that is checked out; without one, what is staged."""
    top = Path(git(folder, "rev-parse", "--show-toplevel").decode().strip())
    diff = (
        patch
        if patch is not None
        else git(top, "diff", "--cached", "--no-ext-diff", "--no-color", "--binary")
    )
    export_commit(top, commit_of(top, "HEAD"), made / "before")
    shutil.copytree(made / "before", made / "after", symlinks=True)
    if diff.strip():
        git(made / "after", "apply", "--whitespace=nowarn", "-", data=diff)
    return change_of(made, diff)


def change_of(made: Path, diff: bytes) -> Change:
    text = diff.decode(errors="replace")
    if len(text) > MAX_DIFF_LENGTH:
        raise BadUsage(
            f"the change has {len(text):,} characters", f"review at most {MAX_DIFF_LENGTH:,} at once"
        )
    return Change(before=str(made / "before"), after=str(made / "after"), diff=text)


def findings_in(text: str) -> tuple[str, list[ReviewFinding]] | Refusal:
    """The verdict and the findings of an answer, each with the test that follows it."""
    review = parse_review(TEST_BLOCK.sub("", text), again=True)
    if isinstance(review, Refusal):
        return review
    starts = list(FINDING.finditer(text))
    ends = [*(match.start() for match in starts[1:]), len(text)]
    found = [
        finding_with_test(finding_from(match), text[match.start() : end])
        for match, end in zip(starts, ends, strict=True)
    ]
    return review.verdict, found


def finding_with_test(finding: Finding, passage: str) -> ReviewFinding:
    block, place = TEST_BLOCK.search(passage), PLACE.search(finding.evidence)
    return ReviewFinding(
        severity=finding.severity,
        text=finding.text.partition("```")[0].strip(),
        path=place["path"].strip() if place else "",
        line=int(place["line"]) if place else 0,
        test=block["code"] if block else "",
    )


async def review_change(session: Session, change: Change, options: CiOptions, tell: Progress) -> ReviewReport:
    """Let a reviewer look at a change, and run its tests before and after it. Nothing of the project is written."""
    if not change.diff.strip():
        return ReviewReport(chat="", verdict="accept", findings=(), cost=0.0)
    team = await unattended_team(session, options)
    seen = Path(change.after).with_name("reviewed")  # what the reviewer writes there is no part of the change
    await to_thread.run_sync(lambda: shutil.copytree(change.after, seen, symlinks=True))
    state = await run_unattended(session, REVIEW_GOAL + change.diff, team, seen, tell, is_copy=True)
    answer = state.talk.answer.text if state.talk.answer else ""
    found = findings_in(answer)
    if isinstance(found, Refusal):
        raise ModelFailed(f"the reviewer's answer is no review: {found.reason}", f"septet show {state.chat}")
    verdict, findings = found
    sandbox = await session.sandbox()
    proven = [await prove(one, number, change, sandbox) for number, one in enumerate(findings, 1)]
    return ReviewReport(
        chat=state.chat, verdict=verdict, findings=tuple(proven), cost=state.spending.total.cost
    )


async def prove(finding: ReviewFinding, number: int, change: Change, sandbox: Sandbox) -> ReviewFinding:
    """Run the finding's test on the changed project, and on the one before if it fails."""
    if not finding.test:
        return finding
    after = await run_test(finding.test, number, change.after, sandbox)
    if not fails(after):
        return replace(finding, proof="not shown", detail=f"its test does not fail: {after.ending}")
    before = await run_test(finding.test, number, change.before, sandbox)
    proof: Proof = "regression" if passes(before) else "failing test"
    return replace(
        finding, proof=proof, detail=f"after: {after.report.counts}, before: {before.report.counts}"
    )


async def run_test(code: str, number: int, project: str, sandbox: Sandbox) -> RunResult:
    name = f"test_septet_review_{number}.py"
    with temporary_folder("review") as made:
        folder = made / "project"
        await to_thread.run_sync(lambda: shutil.copytree(project, folder, symlinks=True))
        (folder / name).write_text(code, encoding="utf-8")
        return await sandbox.run(Job(command=("python",), workspace=str(folder), tests=True, only=(name,)))


def fails(result: RunResult) -> bool:
    """Whether a test ran and failed: one that could not be imported or set up shows nothing."""
    cases = result.report.cases
    return result.report.trustworthy and any(
        case.outcome == "failed" and case.phase == "call" for case in cases
    )


def passes(result: RunResult) -> bool:
    return result.report.trustworthy and bool(result.report.passed) and not result.report.failed


def failing(findings: Sequence[ReviewFinding], threshold: str) -> bool:
    """Whether the findings are a failure: from a severity on, or only what a test has proven."""
    if threshold == "proven":
        return any(one.proof in PROVEN for one in findings)
    levels = SEVERITIES[: SEVERITIES.index(threshold) + 1] if threshold in SEVERITIES else ()
    return any(one.severity in levels and one.proof != "not shown" for one in findings)


def finding_text(one: ReviewFinding) -> str:
    place = f"{one.path}:{one.line}: " if one.path else ""
    detail = f" ({one.detail})" if one.detail else ""
    return f"{place}[{one.severity}] {one.text} — {one.proof}{detail}"


def sarif(findings: Sequence[ReviewFinding]) -> bytes:
    """The findings as SARIF 2.1.0, as code scanning reads it."""
    rules = [
        {"id": f"septet/{name}", "name": name, "defaultConfiguration": {"level": level}}
        for name, level in LEVELS.items()
    ]
    driver = {"name": "septet", "version": installed_version("septet"), "rules": rules}
    run = {"tool": {"driver": driver}, "results": [sarif_result(one) for one in findings]}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return msgspec.json.format(
        msgspec.json.encode({"$schema": schema, "version": "2.1.0", "runs": [run]}), indent=2
    )


def sarif_result(one: ReviewFinding) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": f"septet/{one.severity}",
        "level": LEVELS[one.severity],
        "message": {"text": f"{one.text} ({one.proof}{f': {one.detail}' if one.detail else ''})"},
        "properties": {"proof": one.proof, "test": one.test},
    }
    if one.path:
        place = {"artifactLocation": {"uri": quote(one.path)}, "region": {"startLine": max(1, one.line)}}
        result["locations"] = [{"physicalLocation": place}]
    return result


class Case(Value):
    """A case of a JUnit report; `problem` if it failed."""

    name: str
    group: str
    problem: str = ""
    detail: str = ""


def result_cases(result: Result) -> list[Case]:
    """Each requirement is a case, and so is how the chat ended."""
    requirements = [
        Case(
            name=f"{line.item} {line.requirement}",
            group=result.chat,
            problem="" if line.met else f"not met: {line.check}",
            detail=line.evidence,
        )
        for line in result.evidence
    ]
    problem = "" if result.exit_code == 0 else f"{result.status}: {result.detail}"
    return [*requirements, Case(name="ended", group=result.chat, problem=problem)]


def finding_cases(report: ReviewReport, threshold: str) -> list[Case]:
    cases = [
        Case(
            name=finding_text(one),
            group="review",
            problem=one.text if failing([one], threshold) else "",
            detail=one.test,
        )
        for one in report.findings
    ]
    return cases or [Case(name="no findings", group="review")]


def junit(name: str, cases: Sequence[Case]) -> bytes:
    """Cases in the form that CI systems read as JUnit's."""
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(bool(case.problem) for case in cases)),
        "errors": "0",
    }
    root = ET.Element("testsuites", {"name": "septet", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": name, **counts})
    for case in cases:
        entry = ET.SubElement(suite, "testcase", name=xml_text(case.name), classname=case.group)
        if case.problem:
            failure = ET.SubElement(entry, "failure", message=xml_text(case.problem))
            failure.text = xml_text(case.detail)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True)


def xml_text(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "�", text)
