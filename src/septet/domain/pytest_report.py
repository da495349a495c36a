"""The typed report of a test run, built from the records that our pytest plugin sends over a pipe of its own.

A test has passed only if its own code ran and raised nothing, and no hook reported otherwise. Old logs contain only
the summary that pytest printed.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec
from msgspec.structs import replace

from septet.common.values import Value

PYTEST_OPTIONS = (
    *("-q", "-rA", "--tb=short", "--no-header", "--color=no"),
    "--continue-on-collection-errors",  # one file that cannot be imported must not hide the outcome of the others
)
PYTEST = ("python", "-m", "pytest", *PYTEST_OPTIONS)

SUMMARY = re.compile(r"^=+ short test summary info =+$", re.MULTILINE)
LINE = re.compile(r"^(PASSED|FAILED|ERROR|XFAIL|XPASS) (.+?)(?: - .*)?$", re.MULTILINE)
MAX_CASES = 30_000
"""A longer report would be too big for a log."""
MAX_DEEDS = 100

Outcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed", "not run", "unstable"]
Phase = Literal["collect", "setup", "call", "teardown"]
OUTCOME_TEXTS: dict[Outcome, str] = {
    "failed": "failed",
    "error": "error",
    "passed": "passed",
    "skipped": "skipped",
    "xfailed": "expected to fail",
    "xpassed": "passed unexpectedly",
    "not run": "not run",
    "unstable": "unstable",
}
"""In the order in which they are shown."""
WORST_FIRST: tuple[Outcome, ...] = ("error", "failed", "xfailed", "skipped", "xpassed", "passed")
FAILURES: frozenset[Outcome] = frozenset({"failed", "error"})


class TestCase(Value, array_like=True):
    """One test: its outcome, the phase that decided it, and its duration in all."""

    __test__: ClassVar[bool] = False  # not a test itself, whatever pytest thinks of the name

    id: str
    outcome: Outcome
    phase: Phase = "call"
    seconds: float = 0.0


class TestReport(Value):
    """`complete` means that the run ended and nothing is missing; `hooks` are pytest hooks of the workspace, which may
    falsify outcomes; `foreign` are packages of the workspace that were loaded from elsewhere, so that other code was
    tested."""

    __test__: ClassVar[bool] = False

    cases: tuple[TestCase, ...] = ()
    complete: bool = True
    hooks: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    deeds: tuple[str, ...] = ()
    """What files of the workspace did to the interpreter that tests them: `add.py:3 looks at its callers`."""

    @property
    def passed(self) -> tuple[str, ...]:
        return tuple(case.id for case in self.cases if case.outcome == "passed")

    @property
    def failed(self) -> tuple[str, ...]:
        return tuple(case.id for case in self.cases if case.outcome in FAILURES)

    @property
    def trustworthy(self) -> bool:
        return self.complete and not self.hooks and not self.foreign

    def about(self, target: str) -> "TestReport":
        """Return the part of the report for a path or node id."""
        cases = tuple(case for case in self.cases if covers(target, case.id))
        return replace(self, cases=cases)

    @property
    def counts(self) -> str:
        """`1 failed, 3 passed, 1 skipped`; empty if there was no test."""
        numbers = Counter(case.outcome for case in self.cases)
        return ", ".join(
            f"{numbers[outcome]} {text}" for outcome, text in OUTCOME_TEXTS.items() if numbers[outcome]
        )


class ItemCollected(Value, tag="item"):
    id: str


class CollectionFailed(Value, tag="collect"):
    """A file whose tests could not be collected, or that skips itself."""

    id: str
    outcome: Literal["failed", "skipped"]


class PhaseEnded(Value, tag="phase"):
    """`raised` is what the phase itself raised, before any hook; `reported` is the outcome after all hooks."""

    id: str
    when: Literal["setup", "call", "teardown"]
    raised: Literal["", "skipped", "xfail", "failed"]
    reported: Literal["passed", "failed", "skipped"]
    expected: bool = False
    """Whether the test is marked as expected to fail."""
    seconds: float = 0.0


class HookFound(Value, tag="hook"):
    name: str
    where: str


class ForeignModule(Value, tag="foreign"):
    """A package of the workspace that was loaded from elsewhere."""

    name: str
    where: str


class DeedFound(Value, tag="deed"):
    """What a file of the workspace did to the interpreter that tests it, and where."""

    name: str
    where: str


class RunEnded(Value, tag="end"):
    """The last record; `whole` is False if pytest itself was modified during the run."""

    status: int
    whole: bool


Record = ItemCollected | CollectionFailed | PhaseEnded | HookFound | ForeignModule | DeedFound | RunEnded
Note = HookFound | ForeignModule | DeedFound
RECORD_DECODER = msgspec.json.Decoder(Record)


def parse_pytest_report(data: bytes, nonce: str) -> TestReport:
    """Build the report from numbered lines; it is incomplete from the first line with a wrong number or nonce."""
    records: list[Record] = []
    for number, line in enumerate(data.split(b"\n")[:-1]):
        head = f"{nonce} {number} ".encode()
        try:
            record = RECORD_DECODER.decode(line.removeprefix(head)) if line.startswith(head) else None
        except (msgspec.MsgspecError, UnicodeDecodeError):
            record = None
        if record is None:
            return build_test_report(records, complete=False)
        records.append(record)
    ended = bool(records) and isinstance(records[-1], RunEnded) and records[-1].whole
    return build_test_report(records, complete=ended and data.endswith(b"\n"))


def build_test_report(records: Iterable[Record], complete: bool) -> TestReport:
    """Build the report; every collected test has an outcome, "not run" if nothing else is known."""
    cases: dict[str, list[TestCase]] = {}
    notes: dict[Note, None] = {}
    for record in records:
        match record:
            case ItemCollected(id=test):
                cases.setdefault(test, [])
            case CollectionFailed(id=test, outcome=outcome):
                decided: Outcome = "error" if outcome == "failed" else "skipped"
                cases.setdefault(test, []).append(TestCase(id=test, outcome=decided, phase="collect"))
            case PhaseEnded(id=test):
                cases.setdefault(test, []).append(phase_case(record))
            case HookFound() | ForeignModule() | DeedFound():
                notes[record] = None
            case RunEnded():
                continue
    decided_cases = [decided_case(test, phases) for test, phases in cases.items()]
    whole = complete and len(decided_cases) <= MAX_CASES
    return TestReport(
        cases=tuple(decided_cases[:MAX_CASES]),
        complete=whole,
        hooks=tuple(f"{one.where}: {one.name}" for one in notes if isinstance(one, HookFound)),
        foreign=tuple(
            f"{one.name} was loaded from {one.where}" for one in notes if isinstance(one, ForeignModule)
        ),
        deeds=tuple(f"{one.where} {one.name}" for one in notes if isinstance(one, DeedFound))[:MAX_DEEDS],
    )


def phase_case(record: PhaseEnded) -> TestCase:
    """Return the outcome by this phase alone: the worse of what it raised and what was reported."""
    outcome: Outcome
    if record.raised == "xfail" or (record.expected and record.reported == "skipped"):
        outcome = "xfailed"
    elif record.raised == "failed" or record.reported == "failed":
        outcome = "failed" if record.when == "call" else "error"
    elif record.raised == "skipped" or record.reported == "skipped":
        outcome = "skipped"
    else:
        outcome = "xpassed" if record.expected else "passed"
    return TestCase(id=record.id, outcome=outcome, phase=record.when, seconds=record.seconds)


def decided_case(test: str, phases: list[TestCase]) -> TestCase:
    """Return the outcome of the worst phase; "not run" if the call phase is missing without a reason."""
    seconds = round(sum(phase.seconds for phase in phases), 4)
    worst = min(phases, key=lambda phase: WORST_FIRST.index(phase.outcome), default=None)
    called = any(phase.phase == "call" for phase in phases)
    if worst is None or (worst.outcome == "passed" and not called):
        return TestCase(id=test, outcome="not run", phase="collect", seconds=seconds)
    return TestCase(id=test, outcome=worst.outcome, phase=worst.phase, seconds=seconds)


def one_case(name: str, passed: bool, complete: bool) -> TestReport:
    """Return a report with one test, for test commands of which only the exit code is known."""
    outcome = ("passed" if passed else "failed") if complete else "not run"
    return TestReport(cases=(TestCase(id=name, outcome=outcome),), complete=complete)


def parse_report(stdout: str) -> TestReport:
    """Parse the last summary that pytest printed, for old logs."""
    starts = [match.end() for match in SUMMARY.finditer(stdout)]
    if not starts:
        return TestReport()
    outcomes: dict[str, Outcome] = {
        "PASSED": "passed",
        "FAILED": "failed",
        "ERROR": "error",
        "XFAIL": "xfailed",
        "XPASS": "xpassed",
    }
    lines = LINE.findall(stdout, starts[-1])
    return TestReport(cases=tuple(TestCase(id=test, outcome=outcomes[outcome]) for outcome, test in lines))


def covers(target: str, test: str) -> bool:
    """Whether `target` includes the test: `test_a.py` all of its tests, `test_a.py::test_b` its parametrised cases."""
    return test == target or test.startswith((target + "::", target + "[", target.rstrip("/") + "/"))
