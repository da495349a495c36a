"""What a person reads while the team works: the words for each event, exactly."""

import pytest
from msgspec.structs import replace
from team.states import STARTED, chat

from septet.chat.progress import Words, event_line, plan_changes, progress_line
from septet.chat.results import RunOutcome
from septet.domain.events import (
    AnswerGiven,
    BaseMoved,
    ChallengeDecided,
    ChatStarted,
    CheckChallenged,
    DataDescribed,
    DecisionRecorded,
    DeliveryStarted,
    EnvironmentProbed,
    Event,
    EvidenceFound,
    ExampleGiven,
    ModelAnswered,
    PackagesWanted,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    ReplyRefused,
    ReviewGiven,
    RunFinished,
    SnapshotTaken,
    StopRequested,
    ToolAnswered,
    ToolCalled,
    TurnOpened,
    VersionWritten,
    WorkAccepted,
)
from septet.domain.files import FileChange, FileRef
from septet.domain.messages import Answer, ToolCall
from septet.domain.packages import MissingPackages
from septet.domain.plans import (
    Check,
    CommandSucceeds,
    ExampleHolds,
    FileExists,
    PictureExists,
    Plan,
    Requirement,
)
from septet.domain.pytest_report import TestCase, TestReport
from septet.domain.runs import Purpose, RunResult
from septet.domain.teams import RoleSpec, TeamSpec
from septet.web.chat_view import event_text_for_page

FILES = (FileRef(path="a.py", sha256="1", size=1), FileRef(path="b.py", sha256="2", size=2))
CHANGES = (
    FileChange(path="out.csv", kind="new", sha256="1", size=1),
    FileChange(path="gone.txt", kind="deleted"),
)
DIFF = "--- a/out.csv\n+++ b/out.csv\n@@ -1 +1,2 @@\n-x\n+y\n+z\n"
LONG = "first\n" + "x" * 250 + "\n\n"
ARGUMENTS = "a" * 130
CASES = (TestCase(id="test_a.py::a", outcome="passed"), TestCase(id="test_a.py::b", outcome="failed"))


def run(purpose: Purpose, result: RunResult, about: str = "") -> RunFinished:
    return RunFinished(id="r", purpose=purpose, about=about, command="python a.py", tree="t", result=result)


def answered(text: str, *, failed: bool = False) -> ToolAnswered:
    return ToolAnswered(id="1", text=text, failed=failed)


def evidence(passed: bool) -> EvidenceFound:
    return EvidenceFound(item="P1", check=FileExists(path="a"), passed=passed, detail="no file", tree="t")


LINES: list[tuple[Event, Words]] = [
    (VersionWritten(number=2, files=FILES, tree="t"), ("coder", "version 2: a.py, b.py")),
    (
        VersionWritten(number=2, files=FILES[:1], tree="t", note="mine", found=True),
        ("person", "version 2: a.py\nmine"),
    ),
    (evidence(True), ("runner", "✓ P1 file a: no file")),
    (evidence(False), ("runner", "✗ P1 file a: no file")),
    (ReviewGiven(version=1, tree="t", verdict="accept"), ("reviewer", "verdict: accept")),
    (DecisionRecorded(by="coder", what="wait", why="it rains"), ("coder", "decided: wait, because it rains")),
    (ModelAnswered(role="manager", answer=Answer(text="go")), ("manager", "go")),
    (ModelAnswered(role="coder", answer=Answer(text="go")), ("coder", "")),
    (SnapshotTaken(number=2, manifest="m", entries=3, files=3), ("", "")),
    (ToolCalled(id="1", by="coder", name="read", arguments=ARGUMENTS), ("coder", "read " + "a" * 79 + "…")),
    (answered("one\ntwo\n\n"), ("septet", "two")),
    (answered(LONG), ("septet", "x" * 200)),
    (answered(" \n"), ("", "")),
    (answered("one\ntwo", failed=True), ("septet", "✗ one\ntwo")),
    (replace(answered("a.py\nprint()"), shown=FILES), ("septet", "a.py")),
    (replace(answered("no\nmore", failed=True), shown=FILES), ("septet", "✗ no")),
    (
        replace(answered(DIFF), changes=CHANGES),
        ("septet", "out.csv, gone.txt: 2 lines added, 1 removed"),
    ),
    (DataDescribed(path="d.csv", sha256="1", size=1, card="3 rows"), ("septet", "data: d.csv\n3 rows")),
    (AnswerGiven(by="clerk", text="42", ground="certain"), ("clerk", "42")),
    (PersonSpoke(text="hello"), ("person", "hello")),
    (PlanApproved(plan="p"), ("person", "plan approved")),
    (PlanApproved(plan="p", by="flag"), ("person", "plan approved (without asking)")),
    (ExampleGiven(failure="f"), ("exemplar", "no example")),
    (
        ExampleGiven(failure="f", code="c", source="docs", title="loops"),
        ("exemplar", "an example from docs: loops"),
    ),
    (WorkAccepted(), ("person", "accepted as it is")),
    (
        CheckChallenged(by="coder", item="P1", reason="it is 6", instead="6"),
        ("coder", "the check of P1 is wrong: it is 6; instead: 6"),
    ),
    (
        CheckChallenged(by="coder", item="P1", reason="it is 6"),
        ("coder", "the check of P1 is wrong: it is 6"),
    ),
    (
        ChallengeDecided(by="planner", item="P1", stands=True, reason="no"),
        ("planner", "the check of P1 stands: no"),
    ),
    (
        ChallengeDecided(by="planner", item="P1", stands=False, reason="yes"),
        ("planner", "the check of P1 is wrong: yes"),
    ),
    (
        ReplyRefused(role="coder", reason="no\ncode"),
        ("septet", "the coder's reply was refused: no\ncode"),
    ),
    (
        ReplyRefused(role="coder", reason="no\nsecrets", shown=FILES),
        ("septet", "the coder's reply was refused: no"),
    ),
    (PackagesWanted(missing=MissingPackages(distributions=("x",))), ("runner", "not installed: x")),
    (EnvironmentProbed(python="3.12"), ("septet", "programs run with Python 3.12")),
    (EnvironmentProbed(python="3.12", packages=("x",)), ("septet", "programs run with Python 3.12, x")),
    (BaseMoved(changed=(), conflicts=("a.py",)), (
        "person", "changed in the folder: ; in conflict with the team's change: a.py",
    )),
    (DeliveryStarted(number=1, tree="t", files=()), ("", "")),
    (StopRequested(), ("", "")),
]  # fmt: skip


@pytest.mark.parametrize(("event", "line"), LINES)
def test_each_event_is_told_in_these_words(event: Event, line: Words) -> None:
    assert progress_line(event) == line


def test_who_wants_to_see_everything_sees_answers_and_results_whole() -> None:
    told = [
        progress_line(event, verbose=True)
        for event in (
            ModelAnswered(role="coder", answer=Answer(text="go")),
            ToolCalled(id="1", by="coder", name="read", arguments=ARGUMENTS),
            answered("one\ntwo"),
        )
    ]
    assert told == [("coder", "go"), ("coder", f"read {ARGUMENTS}"), ("septet", "one\ntwo")]


RUNS: list[tuple[RunFinished, str]] = [
    (run("run", RunResult(exit_code=0, seconds=1.234)), "✓ run: python a.py → exit 0 · 1.23 s"),
    (
        run("run", RunResult(exit_code=1, stdout="out", stderr="no\nwhy\n", changes=CHANGES)),
        "✗ run: python a.py → exit 1 · 0.00 s · out.csv\nwhy",
    ),
    (
        run("check", RunResult(exit_code=2, stdout="said\n"), "P1"),
        "✗ check P1: python a.py → exit 2 · 0.00 s\nsaid",
    ),
    (
        replace(run("run", RunResult(exit_code=0)), mode="server"),
        "✓ run: python a.py (asked as a server) → exit 0 · 0.00 s",
    ),
    (
        run("tests", RunResult(exit_code=1, stdout="noise", tests=TestReport(cases=CASES))),
        "✗ tests → 1 failed, 1 passed · 0.00 s",
    ),
    (
        run("hollow check", RunResult(exit_code=1, stdout="\n5\n"), "P1"),
        "check P1 without a working program: exit 1, prints '5'",
    ),
    (
        run("check on base", RunResult(exit_code=0), "P1"),
        "check P1 without the change: exit 0, prints nothing",
    ),
    (
        run("tests alone", RunResult(exit_code=1, tests=TestReport(cases=CASES[1:]))),
        "tests without the program: they fail, as they should",
    ),
]


@pytest.mark.parametrize(("finished", "line"), RUNS)
def test_each_run_is_told_in_one_line_and_a_failure_with_its_last_words(
    finished: RunFinished, line: str
) -> None:
    assert progress_line(finished, verbose=True) == ("runner", line)


def test_a_plan_is_told_with_its_size_and_a_revised_one_as_what_changed() -> None:
    one = Requirement(id="P1", text="adds", check=FileExists(path="a"))
    more = replace(one, id="P1b", check=FileExists(path="b"))
    plan = Plan(items=(one,))
    assert progress_line(PlanProposed(plan=plan)) == ("planner", "1 requirement\n1. adds\n   check: file a\n")
    both = PlanProposed(plan=Plan(items=(one, more)))
    assert progress_line(both)[1].startswith("1 requirement with 2 checks\n1. adds\n")
    state = chat([STARTED])
    assert event_line(None, state, both) == progress_line(both)
    assert event_line(plan, state, both) == (
        "planner",
        "the plan, changed\n 1. adds\n-   check: file a\n+   check P1: file a\n+   check P1b: file b",
    )
    assert plan_changes(plan, plan) == "1. adds\n   check: file a\n"


def test_of_a_long_plan_all_lines_are_shown_not_only_those_that_changed() -> None:
    items = [Requirement(id=f"P{n}", text=f"does {n}", check=FileExists(path=f"{n}")) for n in range(1, 60)]
    last = replace(items[-1], check=CommandSucceeds(command="ls"))
    lines = plan_changes(Plan(items=tuple(items)), Plan(items=(*items[:-1], last))).splitlines()
    assert len(lines) == 2 * 59 + 1
    assert lines[-2:] == ["-   check: file 59", "+   check: command ls"]


TOOLS = TeamSpec(name="tools", members=(RoleSpec(name="coder", role="coder", form="tools"),))
CALL = ToolCalled(id="1", by="coder", name="read", arguments="{}")


def tool_work(event: Event, team: TeamSpec = TOOLS, *, verbose: bool = False) -> Words:
    started = ChatStarted(goal="g", team=team, workspace="/w")
    return event_line(None, chat([started, TurnOpened(speaker="coder"), CALL]), event, verbose)


def test_of_a_member_with_tools_each_call_is_told_once_by_its_result() -> None:
    assert tool_work(CALL) == ("", "")
    assert tool_work(answered("found\nmore")) == ("coder", "read: found")
    assert tool_work(answered("found\nmore", failed=True)) == ("coder", "✗ read: found")
    assert tool_work(replace(answered("found"), summary="read a.py")) == ("coder", "read a.py")
    assert tool_work(replace(answered("found"), id="2")) == ("coder", "found")
    assert tool_work(run("script", RunResult(exit_code=0))) == ("", "")
    assert tool_work(run("run", RunResult(exit_code=0))) == (
        "runner",
        "✓ run: python a.py → exit 0 · 0.00 s",
    )
    calling = Answer(text=" I look \n", calls=(ToolCall(id="1", name="read", arguments="{}"),))
    assert tool_work(ModelAnswered(role="coder", answer=calling)) == ("coder", "I look")
    assert tool_work(ModelAnswered(role="coder", answer=Answer(text="done"))) == ("coder", "")
    assert tool_work(CALL, verbose=True) == ("coder", "read {}")


def test_of_a_member_without_tools_calls_are_told_as_they_always_are() -> None:
    plain = replace(TOOLS, members=(RoleSpec(name="coder", role="coder"),))
    assert tool_work(CALL, plain) == ("coder", "read")
    assert tool_work(CALL, replace(TOOLS, members=())) == ("coder", "read")
    started = ChatStarted(goal="g", team=TOOLS, workspace="/w")
    assert event_line(None, chat([started]), CALL) == ("coder", "read")


def check_run(purpose: Purpose, exit_code: int = 0) -> RunFinished:
    result = RunResult(exit_code=exit_code, stdout="5\n", stderr="ValueError: five", seconds=0.5)
    return RunFinished(
        id="r1", purpose=purpose, about="P1", command="python add.py 2 3", tree="t", result=result
    )


def test_a_check_that_went_well_and_its_controls_are_told_by_the_evidence_alone() -> None:
    for run in (check_run("check"), check_run("hollow check"), check_run("check on base")):
        assert progress_line(run) == ("", "")
        assert progress_line(run, verbose=True)[1]


def test_the_page_marks_what_the_evidence_tells_and_an_example_shows_what_it_gives() -> None:
    hollow = replace(
        check_run("hollow check"), result=RunResult(exit_code=0, stdout="\nseptet-example:=None\n")
    )
    text = event_text_for_page(hollow)
    assert text is not None
    assert (text.in_evidence, text.outcome) == (True, RunOutcome(text="gives None", good=True))
    failed = event_text_for_page(check_run("check", exit_code=1))
    assert failed is not None
    assert not failed.in_evidence


def test_a_check_that_failed_is_told_with_its_last_line() -> None:
    line = progress_line(check_run("check", exit_code=1))
    assert line == ("runner", "✗ check P1: python add.py 2 3 → exit 1 · 0.50 s\nValueError: five")


@pytest.mark.parametrize(
    ("check", "passed", "detail", "line"),
    [
        (
            ExampleHolds(call="app.add(2, 3)", value="5"),
            True,
            "gives the value",
            "✓ P1 app.add(2, 3) gives 5",
        ),
        (
            ExampleHolds(call="app.add(2, 3)", value="5"),
            False,
            "app.add(2, 3) gives 6, not 5",
            "✗ P1 app.add(2, 3) gives 6, not 5",
        ),
        (
            ExampleHolds(call="app.add(2, 3)", value="5", held=True),
            False,
            "an example that is held back fails",
            "✗ P1 held app.add(2, 3) => 5: an example that is held back fails",
        ),
        (CommandSucceeds(command="python add.py"), True, "exit 0", "✓ P1 python add.py: exit 0"),
        (CommandSucceeds(command="python add.py"), False, "exit 1", "✗ P1 command python add.py: exit 1"),
        (PictureExists(path="a.png"), True, "320×320 PNG", "✓ P1 picture a.png: 320×320 PNG"),
    ],
)
def test_evidence_names_what_was_looked_at(check: Check, passed: bool, detail: str, line: str) -> None:
    found = EvidenceFound(item="P1", check=check, passed=passed, detail=detail, tree="t")
    assert progress_line(found) == ("runner", line)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ('{"reasoning": "a misprint", "path": "main.py", "old": "x", "new": "y"}', "edit main.py"),
        ('{"lines": 3, "code": "a\\nb"}', "edit"),
        ('{"path": "main.py", "code": "' + "x" * 200, 'edit {"path": "main.py", "code": "' + "x" * 50 + "…"),
        ('["main.py"]', 'edit ["main.py"]'),
    ],
)
def test_a_call_of_a_tool_is_told_by_what_it_is_about(arguments: str, line: str) -> None:
    called = ToolCalled(id="1", by="coder", name="edit", arguments=arguments)
    assert progress_line(called) == ("coder", line)
    assert progress_line(called, verbose=True) == ("coder", f"edit {arguments}")


def test_a_file_without_lines_is_told_by_its_size() -> None:
    made = ToolAnswered(
        id="1",
        text="drawn",
        changes=(
            FileChange(path="plot.svg", kind="new", size=1, sha256="a"),
            FileChange(path="b.png", kind="changed", size=7_001),
        ),
    )
    assert progress_line(made) == ("septet", "plot.svg: new, 1 byte, b.png: changed, 7,001 bytes")
