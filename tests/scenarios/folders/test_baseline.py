"""The project's own tests before and after: what was red may stay red, what was green may not become so."""

from pathlib import Path

import pytest
from scenarios.folders.chats import ACCEPT, REVISE, code, fill, git, plan, play, repository, script

from septet.domain.events import Delivered, EvidenceFound, RunFinished

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
