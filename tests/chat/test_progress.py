"""What whoever watches a chat reads: one line a thing, and nothing twice."""

import pytest

from septet.chat.progress import progress_line
from septet.domain.events import EvidenceFound, RunFinished, ToolAnswered, ToolCalled
from septet.domain.files import FileChange
from septet.domain.plans import Check, CommandSucceeds, ExampleHolds, PictureExists
from septet.domain.runs import Purpose, RunResult


def check_run(purpose: Purpose, exit_code: int = 0) -> RunFinished:
    result = RunResult(exit_code=exit_code, stdout="5\n", stderr="ValueError: five", seconds=0.5)
    return RunFinished(
        id="r1", purpose=purpose, about="P1", command="python add.py 2 3", tree="t", result=result
    )


def test_a_check_that_went_well_and_its_controls_are_told_by_the_evidence_alone() -> None:
    for run in (check_run("check"), check_run("hollow check"), check_run("check on base")):
        assert progress_line(run) == ("", "")
        assert progress_line(run, verbose=True)[1]


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
