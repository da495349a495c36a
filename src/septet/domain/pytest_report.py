"""What became of the tests of a run: a typed report, made of what our part of pytest told over a channel of its own.

A test has passed only if its own code ran and raised nothing, and nobody said otherwise. A log of an older version
holds nothing but pytest's closing summary.
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
    "--continue-on-collection-errors",  # one file that cannot be imported must not hide what becomes of the others
)
PYTEST = ("python", "-m", "pytest", *PYTEST_OPTIONS)

SUMMARY = re.compile(r"^=+ short test summary info =+$", re.MULTILINE)
LINE = re.compile(r"^(PASSED|FAILED|ERROR|XFAIL|XPASS) (.+?)(?: - .*)?$", re.MULTILINE)
MOST_CASES = 30_000
"""More than that is no report that a log could hold."""

Outcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed", "not run", "unstable"]
Phase = Literal["collect", "setup", "call", "teardown"]
WORDS: dict[Outcome, str] = {
    "failed": "failed",
    "error": "error",
    "passed": "passed",
    "skipped": "skipped",
    "xfailed": "expected to fail",
    "xpassed": "passed unexpectedly",
    "not run": "not run",
    "unstable": "unstable",
}
"""In the order in which they are told."""
WORST: tuple[Outcome, ...] = ("error", "failed", "xfailed", "skipped", "xpassed", "passed")
FAILURES: frozenset[Outcome] = frozenset({"failed", "error"})


class TestCase(Value, array_like=True):
    """One test: what became of it, the phase that decided, and how long it took in all."""

    __test__: ClassVar[bool] = False  # not a test itself, whatever pytest thinks of the name

    id: str
    outcome: Outcome
    phase: Phase = "call"
    seconds: float = 0.0


class TestReport(Value):
    """`complete` tells whether the run came to its end and nothing in the report is missing; `hooks` are those of the
    workspace that take part in how tests are run, so that nobody knows whether they were; `foreign` are packages of
    the workspace that were loaded from elsewhere, so that something else was tested."""

    __test__: ClassVar[bool] = False

    cases: tuple[TestCase, ...] = ()
    complete: bool = True
    hooks: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()

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
        """The part of it that a path or node id names."""
        cases = tuple(case for case in self.cases if covers(target, case.id))
        return replace(self, cases=cases)

    @property
    def counts(self) -> str:
        """`1 failed, 3 passed, 1 skipped`, or nothing where there was no test."""
        found = Counter(case.outcome for case in self.cases)
        return ", ".join(f"{found[outcome]} {word}" for outcome, word in WORDS.items() if found[outcome])


class ItemCollected(Value, tag="item"):
    id: str


class CollectionFailed(Value, tag="collect"):
    """A file that could not be read for tests, or that said that it is to be skipped."""

    id: str
    outcome: Literal["failed", "skipped"]


class PhaseEnded(Value, tag="phase"):
    """`raised` is what the phase itself raised, before any hook saw it; `reported` is what the hooks made of it."""

    id: str
    when: Literal["setup", "call", "teardown"]
    raised: Literal["", "skipped", "xfail", "failed"]
    reported: Literal["passed", "failed", "skipped"]
    expected: bool = False
    """Whether pytest took it for a test that is expected to fail."""
    seconds: float = 0.0


class HookFound(Value, tag="hook"):
    name: str
    where: str


class ForeignModule(Value, tag="foreign"):
    """A package that the workspace has, loaded from elsewhere."""

    name: str
    where: str


class RunEnded(Value, tag="end"):
    """The last line; `whole` tells whether pytest itself was as it had been at the start."""

    status: int
    whole: bool


Record = ItemCollected | CollectionFailed | PhaseEnded | HookFound | ForeignModule | RunEnded
RECORDS = msgspec.json.Decoder(Record)


def read_report(told: bytes, nonce: str) -> TestReport:
    """The report that the lines add up to. What is not in its place, or not from where it should be, ends it."""
    records: list[Record] = []
    for number, line in enumerate(told.split(b"\n")[:-1]):
        head = f"{nonce} {number} ".encode()
        try:
            record = RECORDS.decode(line.removeprefix(head)) if line.startswith(head) else None
        except (msgspec.MsgspecError, UnicodeDecodeError):
            record = None
        if record is None:
            return report_of(records, complete=False)
        records.append(record)
    ended = bool(records) and isinstance(records[-1], RunEnded) and records[-1].whole
    return report_of(records, complete=ended and told.endswith(b"\n"))


def report_of(records: Iterable[Record], complete: bool) -> TestReport:
    """Every test that was collected has an outcome, if only that it was not run."""
    cases: dict[str, list[TestCase]] = {}
    hooks: dict[str, None] = {}
    foreign: dict[str, None] = {}
    for record in records:
        match record:
            case ItemCollected(id=test):
                cases.setdefault(test, [])
            case CollectionFailed(id=test, outcome=outcome):
                decided: Outcome = "error" if outcome == "failed" else "skipped"
                cases.setdefault(test, []).append(TestCase(id=test, outcome=decided, phase="collect"))
            case PhaseEnded(id=test):
                cases.setdefault(test, []).append(phase_case(record))
            case HookFound(name=name, where=where):
                hooks[f"{where}: {name}"] = None
            case ForeignModule(name=name, where=where):
                foreign[f"{name} was loaded from {where}"] = None
            case RunEnded():
                continue
    found = [decided_case(test, phases) for test, phases in cases.items()]
    whole = complete and len(found) <= MOST_CASES
    return TestReport(
        cases=tuple(found[:MOST_CASES]), complete=whole, hooks=tuple(hooks), foreign=tuple(foreign)
    )


def phase_case(record: PhaseEnded) -> TestCase:
    """What the phase alone would make of the test: the worse of what it raised and of what was reported."""
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
    """The worst phase decides; a test whose own phase never came, without a reason, was not run."""
    seconds = round(sum(phase.seconds for phase in phases), 4)
    worst = min(phases, key=lambda phase: WORST.index(phase.outcome), default=None)
    called = any(phase.phase == "call" for phase in phases)
    if worst is None or (worst.outcome == "passed" and not called):
        return TestCase(id=test, outcome="not run", phase="collect", seconds=seconds)
    return TestCase(id=test, outcome=worst.outcome, phase=worst.phase, seconds=seconds)


def one_case(name: str, passed: bool, complete: bool) -> TestReport:
    """Of tests that are not pytest's, only the exit code is known: they are one test."""
    outcome = ("passed" if passed else "failed") if complete else "not run"
    return TestReport(cases=(TestCase(id=name, outcome=outcome),), complete=complete)


def parse_report(stdout: str) -> TestReport:
    """The last summary that pytest printed, for logs that have nothing better."""
    starts = [found.end() for found in SUMMARY.finditer(stdout)]
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
    return TestReport(cases=tuple(TestCase(id=test, outcome=outcomes[word]) for word, test in lines))


def covers(target: str, test: str) -> bool:
    """`test_a.py` covers all of its tests, `test_a.py::test_b` also its parametrised cases."""
    return test == target or test.startswith((target + "::", target + "[", target.rstrip("/") + "/"))
