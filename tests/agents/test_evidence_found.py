"""What evidence tells besides whether a check holds: special cases, signs, and what held without the change."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from team.states import STARTED, chat

from septet.agents.checks import find_evidence, holds_when_empty, special_cases_of, unasked
from septet.domain import special_cases
from septet.domain.events import (
    BaseSurveyed,
    Event,
    EvidenceFound,
    PlanApproved,
    PlanProposed,
    RunFinished,
    SpecialCase,
    VersionWritten,
)
from septet.domain.files import FileChange, FileRef
from septet.domain.plans import (
    Check,
    CommandSucceeds,
    ExampleHolds,
    FileExists,
    Mends,
    Plan,
    Requirement,
    Serves,
    TestsPass,
    plan_digest,
)
from septet.domain.pytest_report import Outcome, TestCase, TestReport
from septet.domain.runs import Purpose, RunResult
from septet.domain.state import State
from septet.stores.memory import MemoryBlobs
from septet.team.acceptance import OUTCOME_MARK
from septet.workspace.files import Workspace

pytestmark = pytest.mark.anyio
BASE = BaseSurveyed(kind="folder", root="/w", manifest="m", tests="pytest")
FIVE = f"{OUTCOME_MARK}=5\n"


class Files:
    """Files of a version, and those that a project had before the chat."""

    def __init__(self, before: Mapping[str, str]) -> None:
        self.blobs = MemoryBlobs()
        self.workspace = Workspace(Path("/nowhere"))
        self._before = before

    async def base_texts(self, paths: Iterable[str]) -> dict[str, str]:
        return {path: self._before[path] for path in paths if path in self._before}


def run(purpose: Purpose, about: str = "", code: int = 0, *, stdout: str = "", **made: int) -> RunFinished:
    changes = tuple(FileChange(path=path, kind="new", sha256=path, size=size) for path, size in made.items())
    return RunFinished(
        id=f"{purpose} {about}".strip(),
        purpose=purpose,
        about=about,
        command="c",
        tree="tree",
        result=RunResult(exit_code=code, stdout=stdout, changes=changes),
    )


def suite(purpose: Purpose, *deeds: str, foreign: tuple[str, ...] = (), **outcomes: Outcome) -> RunFinished:
    cases = tuple(TestCase(id=f"test_add.py::test_{name}", outcome=one) for name, one in outcomes.items())
    report = TestReport(cases=cases, deeds=deeds, foreign=foreign)
    code = int(not {"failed", "error"}.isdisjoint(outcomes.values()))
    done = run(purpose, code=code)
    return replace(done, result=replace(done.result, tests=report))


async def state_of(
    files: Files, check: Check, *events: Event, texts: Mapping[str, str], base: RunFinished | bool = False
) -> State:
    plan = Plan(items=(Requirement(id="P1", text="it works", check=check),))
    refs = [
        FileRef(path=path, sha256=await files.blobs.put(text.encode()), size=len(text))
        for path, text in texts.items()
    ]
    project: list[Event] = [BASE] if base else []
    tested: list[Event] = [replace(base, tree="m", id="baseline")] if isinstance(base, RunFinished) else []
    version = VersionWritten(number=1, files=tuple(refs), tree="tree")
    planned = [PlanProposed(plan=plan), PlanApproved(plan=plan_digest(plan))]
    return chat([STARTED, *project, *tested, *planned, version, *events])


async def found(
    check: Check,
    *events: Event,
    texts: Mapping[str, str] | None = None,
    before: Mapping[str, str] | None = None,
    base: RunFinished | bool = False,
) -> EvidenceFound:
    files = Files(before or {})
    state = await state_of(files, check, *events, texts=texts or {"add.py": "x = 1\n"}, base=base)
    return await find_evidence(state, state.plan.items[0], files)


COMMAND = CommandSucceeds(command="python add.py 2 3", prints="5")
EXAMPLE = ExampleHolds(call="add(2, 3)", value="5")
CASE = SpecialCase(place="add.py:3", call="add.add(2, 3)", gives="5", without="6", general=True)


def searched(*tests: str, lost: tuple[str, ...] = (), asked: bool = True) -> RunFinished:
    cases = tuple(special_cases.TestedCase(case=replace(CASE, call=one), tests=(one,)) for one in tests)
    report = special_cases.SpecialCases(cases=cases, lost=lost, asked=asked)
    return run("special cases", stdout=msgspec.json.encode(report).decode())


SEARCHED = searched("test_add.py::test_sum", "test_sub.py::test_it", "P1")


@pytest.mark.parametrize(
    ("check", "calls"),
    [
        (TestsPass(target="test_add.py"), ["test_add.py::test_sum"]),
        (TestsPass(target="test_add.py::test_other"), []),
        (Mends(target="test_sub.py::test_it"), ["test_sub.py::test_it"]),
        (CommandSucceeds(command="pytest test_sub.py"), ["test_sub.py::test_it"]),
        (
            CommandSucceeds(command="python -m pytest"),
            ["test_add.py::test_sum", "test_sub.py::test_it", "P1"],
        ),
        (CommandSucceeds(command="python add.py"), []),
        (EXAMPLE, ["P1"]),
        (Serves(path="/", prints="x"), []),
    ],
)
async def test_special_cases_belong_to_the_requirement_whose_tests_or_example_need_them(
    check: Check, calls: list[str]
) -> None:
    state = await state_of(Files({}), check, SEARCHED, texts={})
    assert [one.call for one in special_cases_of(state, state.plan.items[0])] == calls
    none = await state_of(Files({}), check, texts={})
    assert special_cases_of(none, none.plan.items[0]) == ()


@pytest.mark.parametrize(
    ("check", "search", "why"),
    [
        (EXAMPLE, searched(), ""),
        (EXAMPLE, None, ""),
        (EXAMPLE, searched(lost=("test_a",)), "test_a fails over the same program in another form"),
        (EXAMPLE, searched(asked=False), "the program could not be asked for special cases"),
        (COMMAND, searched(lost=("test_a",)), ""),
    ],
)
async def test_why_special_cases_are_not_known_is_said(
    check: Check, search: RunFinished | None, why: str
) -> None:
    state = await state_of(Files({}), check, *([search] if search else []), texts={})
    assert unasked(state, check) == why


@pytest.mark.parametrize(
    ("check", "texts", "before", "signs"),
    [
        (EXAMPLE, {"add.py": "x = 1\n"}, {}, []),
        (
            EXAMPLE,
            {"add.py": "import os\nif os.getcwd() == '/w':\n    x = 1\n"},
            {},
            ["add.py:2 asks where it runs"],
        ),
        (EXAMPLE, {"add.py": "def f():\n    exec('x = 1')\n"}, {}, ["add.py:2 runs code that is a text"]),
        (EXAMPLE, {"test_add.py": "def f():\n    exec('x = 1')\n"}, {}, []),
        (EXAMPLE, {"add.py": "exec('x = 1')\n"}, {"add.py": "exec('x = 1')\n"}, []),
    ],
)
async def test_signs_that_a_check_may_hold_here_alone_are_told(
    check: Check, texts: dict[str, str], before: dict[str, str], signs: list[str]
) -> None:
    good = run("check", "P1", stdout=FIVE)
    told = await found(check, good, texts=texts, before=before)
    assert told.passed
    assert len(told.signs) == len(signs)
    assert all(one.startswith(start) for one, start in zip(told.signs, signs, strict=True))


async def test_a_check_that_does_not_hold_and_a_file_have_no_signs() -> None:
    asks = {"add.py": "exec('x = 1')\n"}
    assert (await found(EXAMPLE, run("check", "P1", 1), texts=asks)).signs == ()
    made = await found(FileExists(path="add.py"), texts=asks)
    assert (made.passed, made.signs) == (True, ())


@pytest.mark.parametrize(
    ("check", "empty"),
    [
        (COMMAND, "5\n"),
        (EXAMPLE, FIVE),
        (COMMAND, "6\n"),
        (Serves(path="/", prints="5"), "5\n"),
        (COMMAND, None),
    ],
)
async def test_what_holds_with_empty_functions_is_known_of_commands_and_examples(
    check: Check, empty: str | None
) -> None:
    control = [] if empty is None else [run("hollow check", "P1", stdout=empty)]
    state = await state_of(Files({}), check, *control, texts={})
    wanted = empty in ("5\n", FIVE) and not isinstance(check, Serves)
    assert holds_when_empty(state, state.plan.items[0]) is wanted


@pytest.mark.parametrize("base", [True, False])
async def test_a_file_that_no_run_made_held_before_only_where_there_was_a_project(base: bool) -> None:
    check = FileExists(path="out")
    there = {"out": "text"}
    assert (await found(check, texts=there, base=base)).held_before is base
    assert not (await found(check, run("run", out=4), texts=there, base=base)).held_before


RED, GREEN = suite("baseline", sum="failed"), suite("tests", sum="passed")
MENDS = Mends(target="test_add.py::test_sum")


@pytest.mark.parametrize(
    ("base", "runs", "told"),
    [
        (RED, [GREEN], (True, "1 failed before, 1 passed now", "tests")),
        (RED, [suite("tests", sum="failed")], (False, "1 failed", "tests")),
        (RED, [], (False, "was not run", "")),
        (
            suite("baseline", sum="passed"),
            [GREEN],
            (False, "it passed before anything was changed", "baseline"),
        ),
        (suite("baseline", other="failed"), [GREEN], (False, "the base has no such test", "baseline")),
        (True, [GREEN], (False, "there is no base on which it could have failed", "")),
        (
            RED,
            [GREEN, suite("tests as found", sum="failed")],
            (False, "1 failed with the tests as they were found", "tests"),
        ),
        (
            RED,
            [GREEN, suite("tests as found", sum="passed")],
            (True, "1 failed before, 1 passed now", "tests"),
        ),
    ],
)
async def test_a_mended_test_failed_on_the_base_and_passes_now(
    base: RunFinished | bool, runs: list[Event], told: tuple[bool, str, str]
) -> None:
    got = await found(MENDS, *runs, base=base)
    assert (got.passed, got.detail, got.run) == told


CALLER = "import sys\nx = sys._getframe(1)\n"


@pytest.mark.parametrize(
    ("texts", "before", "deeds", "why"),
    [
        ({"add.py": CALLER}, {}, ("add.py:2 looks at its callers",), "add.py:2 looks at its callers"),
        ({"add.py": CALLER}, {"add.py": CALLER}, ("add.py:2 looks at its callers",), ""),
        (
            {"add.py": "class A:\n    def __eq__(self, other):\n        return True\n"},
            {},
            (),
            "add.py:2 answers the same whatever it is compared with",
        ),
    ],
)
async def test_tests_prove_nothing_where_the_program_tampers_with_them(
    texts: dict[str, str], before: dict[str, str], deeds: tuple[str, ...], why: str
) -> None:
    done = [suite("tests", *deeds, sum="passed"), suite("tests alone", sum="failed")]
    got = await found(TestsPass(target="test_add.py"), *done, texts=texts, before=before)
    assert got.passed is not bool(why)
    assert got.detail == (f"{why}, so the tests prove nothing" if why else "1 passed")
