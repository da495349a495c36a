"""The project's own tests before and after: what was red may stay red, what was green may not become so."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from scenarios.folders.chats import ACCEPT, REVISE, code, fill, git, plan, play, repository, script

from septet.domain.events import Delivered, Event, EvidenceFound, Recorded, RunFinished
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.team.evidence import shortcomings

pytestmark = pytest.mark.anyio
BUG = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a * 2\n"
MENDED = BUG.replace("a - b", "a + b")
HARMFUL = MENDED.replace("a * 2", "a * 3")
TESTS = """\
from calc import add, double


def test_add():
    assert add(2, 3) == 5


def test_double():
    assert double(4) == 8


def test_of_old():
    assert add.__doc__
"""
FILES = {
    "src/calc/__init__.py": BUG,
    "tests/test_calc.py": TESTS,
    "pyproject.toml": "[tool.pytest.ini_options]\n",
    ".gitignore": "__pycache__/\n.pytest_cache/\n",
}
SHOWN = {"src/calc/__init__.py": MENDED}
MENDS = plan("", "mends tests/test_calc.py::test_add")


async def test_a_bug_is_mended_although_another_test_was_red_before(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", FILES)
    played = await play(
        tmp_path, script(tmp_path, MENDS, code(SHOWN), code(SHOWN), ACCEPT), "iterate", rounds=2
    )
    (baseline,) = [
        event for event in played.events if isinstance(event, RunFinished) and event.purpose == "baseline"
    ]
    assert baseline.result.report.counts == "2 failed, 1 passed"
    (found,) = [event for event in played.events if isinstance(event, EvidenceFound)]
    assert (found.passed, found.detail) == (True, "1 failed before, 1 passed now")
    assert played.ended.reason == "done"
    assert any(isinstance(event, Delivered) for event in played.events)
    assert git(project, "status", "--porcelain", "-uall") == " M src/calc/__init__.py\n"
    assert (project / "src/calc/__init__.py").read_text() == MENDED


async def test_what_passed_before_must_still_pass(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", FILES)
    harm = {"src/calc/__init__.py": HARMFUL}
    model = script(tmp_path, MENDS, code(harm), code(harm), REVISE, ACCEPT)
    seen: list[str] = []
    played = await play(
        tmp_path,
        model,
        "iterate",
        lambda event: seen.append(type(event).__name__) or "ReviewGiven" in seen,
        rounds=2,
    )
    assert "done" not in [getattr(event, "reason", "") for event in played.events]
    tests = [event for event in played.events if isinstance(event, RunFinished) and event.purpose == "tests"]
    assert "tests/test_calc.py::test_double" in tests[-1].result.report.failed
    fill(project, {})


async def test_a_test_that_passed_before_is_nothing_to_mend(tmp_path: Path) -> None:
    repository(tmp_path / "project", FILES)
    wrong = plan("", "mends tests/test_calc.py::test_double")
    model = script(tmp_path, wrong, code(SHOWN), code(SHOWN), REVISE)
    played = await play(tmp_path, model, "iterate", lambda event: isinstance(event, EvidenceFound), rounds=2)
    (found,) = [event for event in played.events if isinstance(event, EvidenceFound)]
    assert (found.passed, found.detail) == (False, "it passed before anything was changed")


def fold_events(events: Sequence[Event]) -> State:
    return fold(Recorded(chat="c", seq=seq, at=0.0, event=event) for seq, event in enumerate(events, start=1))


EDITED = {"tests/test_calc.py": TESTS.replace("add(2, 3) == 5", "add(2, 3) == -1")}
PATCH = "import calc\n\ncalc.add = lambda a, b: a + b\n\n\ndef test_aaa():\n    assert calc.double(2) == 4\n"
PATCHED = {"tests/test_aaa.py": PATCH}
LIES = {"the test is edited": EDITED, "another test patches the program": PATCHED}


@pytest.mark.parametrize(
    "check", ["mends tests/test_calc.py::test_add", "tests tests/test_calc.py::test_add"]
)
@pytest.mark.parametrize("lie", LIES)
async def test_a_red_test_becomes_green_by_the_program_only(tmp_path: Path, lie: str, check: str) -> None:
    repository(tmp_path / "project", FILES)
    model = script(tmp_path, plan("", check), code(LIES[lie]), code(LIES[lie]), ACCEPT)
    played = await play(tmp_path, model, "iterate", lambda event: isinstance(event, EvidenceFound), rounds=2)
    (found,) = [event for event in played.events if isinstance(event, EvidenceFound)]
    assert (found.passed, found.detail) == (False, "1 failed with the tests as they were found")


async def test_a_green_test_that_was_broken_cannot_be_edited_away(tmp_path: Path) -> None:
    repository(tmp_path / "project", FILES)
    lie = {
        "src/calc/__init__.py": HARMFUL,
        "tests/test_calc.py": TESTS.replace("double(4) == 8", "double(4) == 12"),
    }
    model = script(tmp_path, MENDS, code(lie), code(lie), ACCEPT)
    played = await play(tmp_path, model, "iterate", lambda event: isinstance(event, EvidenceFound), rounds=2)
    assert shortcomings(fold_events(played.events)) == [
        "1 test that passed before fails as it was found (tests/test_calc.py::test_double)"
    ]


async def test_a_test_that_the_plan_names_may_change_with_what_it_tests(tmp_path: Path) -> None:
    repository(tmp_path / "project", FILES)
    change = {
        "src/calc/__init__.py": HARMFUL,
        "tests/test_calc.py": TESTS.replace("double(4) == 8", "double(4) == 12"),
    }
    named = plan("", "tests tests/test_calc.py::test_double")
    model = script(tmp_path, named, code(change), code(change), ACCEPT)
    played = await play(tmp_path, model, "iterate", rounds=2)
    assert played.ended.reason == "done"
    (found,) = [event for event in played.events if isinstance(event, EvidenceFound)]
    assert found.detail == "1 passed; as it was found: 1 failed"
