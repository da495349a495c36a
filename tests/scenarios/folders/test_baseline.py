"""The project's own tests before and after: what was red may stay red, what was green may not become so."""

import shutil
import venv
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace
from scenarios.autocoder.playing import home_in
from scenarios.folders.chats import (
    ACCEPT,
    FIXED,
    REVISE,
    Played,
    call,
    code,
    crew,
    fill,
    fold_events,
    git,
    plan,
    play,
    repository,
    script,
)

from septet.agents.person import always_agree
from septet.agents.plan_probe import START_ONLY
from septet.chat.results import report_table
from septet.domain.events import (
    ChatEnded,
    Delivered,
    Event,
    EvidenceFound,
    PlanProposed,
    ReplyRefused,
    ReviewGiven,
    RunFinished,
    VersionWritten,
)
from septet.domain.plans import plan_text
from septet.domain.runs import Job, Limits, RunResult
from septet.domain.state import State
from septet.ports import Listener, Record, Sandbox
from septet.team.evidence import shortcomings
from septet.wiring.session import open_session, with_model

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


def runs(played: Played, purpose: str) -> list[RunFinished]:
    return [event for event in played.events if isinstance(event, RunFinished) and event.purpose == purpose]


CHANCE = """\
import os

def test_chance():
    tries = len(os.listdir({folder!r}))
    open(os.path.join({folder!r}, str(tries)), "w").close()
    assert tries not in {red}
"""


@pytest.mark.parametrize(
    ("red", "excused", "words"),
    [
        ([1], True, "passed 2 of 3 times now and 3 of 3 times on the base"),
        ([1, 2, 3], False, ""),
    ],
)
async def test_a_test_that_fails_by_chance_blocks_nothing_and_is_named(
    tmp_path: Path, red: list[int], excused: bool, words: str
) -> None:
    """Its runs are counted: the first is the base's, the second the version's, then two on each."""
    counts = tmp_path / "counts"
    counts.mkdir()
    chance = CHANCE.format(folder=str(counts), red=red)
    repository(tmp_path / "project", {**FILES, "tests/test_chance.py": chance})
    model = script(tmp_path, MENDS, code(SHOWN), code(SHOWN), ACCEPT)
    played = await play(
        tmp_path, model, "iterate", lambda event: isinstance(event, ReviewGiven), rounds=2, unsafe=True
    )
    state = fold_events(played.events)
    again = runs(played, "tests again")
    assert [run.about for run in again] == ["now 1", "now 2", "base 1", "base 2"]
    assert {run.only for run in again} == {("tests/test_chance.py::test_chance",)}
    assert shortcomings(state) == ([] if excused else ["1 of 4 tests fails"])
    assert words in report_table(state)
    assert ("unstable" in report_table(state)) == excused


CLAMP = "\n\ndef clamp(a):\n    return min(a, 9)\n"
CLAMPED = {"src/calc/__init__.py": BUG + CLAMP}
NEW = """\
import calc


def test_clamp():
    assert calc.clamp(12) == 9


def test_double_of_zero():
    assert calc.double(0) == 0
"""


async def test_what_a_new_test_shows_without_the_change_is_said(tmp_path: Path) -> None:
    repository(tmp_path / "project", FILES)
    files = {**CLAMPED, "tests/test_clamp.py": NEW}
    wanted = plan("", "tests tests/test_clamp.py::test_clamp", "tests tests/test_clamp.py")
    played = await play(
        tmp_path, script(tmp_path, wanted, code(files), code(files), ACCEPT), "iterate", rounds=2
    )
    assert played.ended.reason == "done"
    found = [event.detail for event in played.events if isinstance(event, EvidenceFound)]
    assert found == ["1 passed", "2 passed; 1 of them passes without the change too"]
    (over_base,) = runs(played, "tests on base")
    assert (over_base.only, over_base.result.report.counts) == (
        ("tests/test_clamp.py",),
        "1 failed, 1 passed",
    )
    assert "passes without the change too: tests/test_clamp.py::test_double_of_zero" in report_table(
        fold_events(played.events)
    )


ONLY_TESTS = {
    "of what the base does": ("import calc\n\n\ndef test_new():\n    assert calc.double(3) == 6\n", True),
    "of nothing": ("import calc\n\n\ndef test_new():\n    assert calc.double\n", False),
}


@pytest.mark.parametrize("kind", ONLY_TESTS)
async def test_a_version_of_tests_only_is_tried_on_a_hollow_base(tmp_path: Path, kind: str) -> None:
    repository(tmp_path / "project", FILES)
    text, proves = ONLY_TESTS[kind]
    model = script(
        tmp_path, plan("", "tests tests/test_new.py"), *[code({"tests/test_new.py": text})] * 2, ACCEPT
    )
    played = await play(tmp_path, model, "iterate", lambda event: isinstance(event, EvidenceFound), rounds=2)
    (found,) = [event for event in played.events if isinstance(event, EvidenceFound)]
    assert (found.passed, found.detail) == (
        (True, "1 passed; passes without the change too")
        if proves
        else (False, "the tests pass with functions that do nothing, so they prove nothing")
    )


MAKE = {
    "Makefile": "test:\n\tsh check.sh\n\tfor one in tests/*.sh; do sh $$one || exit 1; done\n",
    "check.sh": "test -f program.sh\n",
    "program.sh": "echo 1\n",
    "tests/a.sh": "test $(sh program.sh) = 1\n",
}


@pytest.mark.parametrize(
    ("files", "holds", "detail"),
    [
        ({"program.sh": "echo $((0 + 1))\n"}, True, "1 passed"),
        ({"program.sh": "echo 1; true\n", "tests/b.sh": "true\n"}, False, "nothing shows that they can fail"),
        ({"program.sh": "echo 1 >&1\n", "tests/b.sh": "grep -q '>&1' program.sh\n"}, True, "1 passed"),
    ],
)
async def test_where_no_control_can_be_made_new_tests_must_fail_on_the_base(
    tmp_path: Path, files: dict[str, str], holds: bool, detail: str
) -> None:
    repository(tmp_path / "project", MAKE)
    model = script(tmp_path, plan("", "tests tests/"), code(files), code(files), ACCEPT)
    played = await play(tmp_path, model, "iterate", lambda event: isinstance(event, EvidenceFound), rounds=2)
    (found,) = [event for event in played.events if isinstance(event, EvidenceFound)]
    assert found.passed == holds
    assert detail in found.detail


async def test_tests_of_an_installed_copy_prove_nothing(tmp_path: Path) -> None:
    """The package stands in a folder that nobody looks in, and the project's environment has a copy of it."""
    files = {
        "lib/calc/__init__.py": BUG,
        **{path: text for path, text in FILES.items() if "src/" not in path},
    }
    files[".gitignore"] += ".venv/\n"
    project = repository(tmp_path / "project", files)
    venv.create(project / ".venv", symlinks=True)
    (site,) = (project / ".venv").glob("lib/python3*/site-packages")
    fill(site, {"calc/__init__.py": BUG})
    mended = {"lib/calc/__init__.py": MENDED}
    model = script(tmp_path, MENDS, code(mended), code(mended), REVISE, ACCEPT)
    played = await play(tmp_path, model, "iterate", lambda event: isinstance(event, EvidenceFound), rounds=2)
    (found,) = [event for event in played.events if isinstance(event, EvidenceFound)]
    cause = (
        f"calc was loaded from {site}/calc and not from the workspace (install it with pip install -e, or "
    )
    assert not found.passed
    assert found.detail.startswith(cause)
    assert shortcomings(fold_events(played.events))[0].startswith(f"the tests prove nothing: {cause}")


OTHERS = {"src/other.py": "def one():\n    return 1\n"}
TEST_OTHERS = {"tests/test_other.py": "import other\n\n\ndef test_one():\n    assert other.one() == 1\n"}


async def test_of_a_long_suite_only_affected_tests_run_until_they_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("septet.team.baseline.LONG_SUITE_SECONDS", 0.0)
    repository(tmp_path / "project", {**FILES, **OTHERS, **TEST_OTHERS})
    harm = {"src/calc/__init__.py": HARMFUL}
    model = script(tmp_path, MENDS, code(harm), code(harm), REVISE, code(SHOWN, FIXED), ACCEPT)
    played = await play(tmp_path, model, "iterate", rounds=3)
    assert played.ended.reason == "done"
    suites = [(run.id, run.only) for run in runs(played, "tests")]
    assert suites == [
        ("v1 tests affected", ("tests/test_calc.py",)),
        ("v2 tests affected", ("tests/test_calc.py",)),
        ("v2 tests", ()),
    ]
    assert all(run.only == ("tests/test_calc.py",) for run in runs(played, "tests alone"))


@pytest.mark.torture
async def test_of_a_suite_without_an_end_the_affected_tests_run_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests that the base did not come to run there too: what was red before is not demanded."""
    monkeypatch.setattr("septet.agents.run_context.BASELINE_SECONDS", 1.0)
    sleep = {"tests/test_a.py": "import time\n\n\ndef test_sleep():\n    time.sleep(60)\n"}
    repository(tmp_path / "project", {**FILES, **sleep})
    played = await play(
        tmp_path, script(tmp_path, MENDS, code(SHOWN), code(SHOWN), ACCEPT), "iterate", rounds=2
    )
    assert played.ended.reason == "done"
    (found,) = [event for event in played.events if isinstance(event, EvidenceFound)]
    assert found.detail == "1 failed before, 1 passed now"
    assert (
        "only a part of the suite was run, as it did not end in its time on the base: tests/test_calc.py"
        in (report_table(fold_events(played.events)))
    )


async def test_a_goal_that_names_a_red_test_needs_no_plan_of_the_planner(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", FILES)
    model = script(tmp_path, code(SHOWN), code(SHOWN), ACCEPT)
    goal = "`tests/test_calc.py::test_add` fails, please fix it."
    played = await play(tmp_path, model, "iterate", rounds=2, goal=goal)
    assert played.ended.reason == "done"
    proposed, confirmed = [event for event in played.events if isinstance(event, PlanProposed)]
    assert (proposed.by, plan_text(proposed.plan)) == (
        "septet",
        "1. tests/test_calc.py::test_add passes\n   check: mends tests/test_calc.py::test_add\n",
    )
    assert (confirmed.plan, confirmed.by) == (proposed.plan, "planner"), (
        "it was asked what nothing holds back"
    )
    assert "calc.add(2, 3)" in confirmed.asked
    assert (project / "src/calc/__init__.py").read_text() == MENDED


@pytest.mark.parametrize(
    "goal",
    [
        "tests/test_calc.py::test_add fails, fix it and add a --json option",
        "tests/test_calc.py::test_subtract fails, fix it",
        "src/calc/__init__.py fails, fix it",
    ],
)
async def test_a_goal_that_says_more_is_the_planners(tmp_path: Path, goal: str) -> None:
    repository(tmp_path / "project", FILES)
    played = await play(
        tmp_path,
        script(tmp_path, MENDS, code(SHOWN)),
        "iterate",
        lambda event: isinstance(event, PlanProposed),
        goal=goal,
    )
    assert [event.by for event in played.events if isinstance(event, PlanProposed)] == ["planner"]


NODE = {
    "package.json": '{"name": "calc", "scripts": {"test": "node --test test/"}}\n',
    "calc.js": "exports.add = (a, b) => a - b;\nexports.double = (a) => a * 2;\n",
    "test/calc.test.js": """\
const test = require('node:test');
const assert = require('assert');
const calc = require('../calc.js');
test('adds', () => assert.equal(calc.add(2, 3), 5));
test('doubles', () => assert.equal(calc.double(4), 8));
test('of old', () => assert.ok(calc.version));
""",
}


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
async def test_tests_of_another_language_are_known_one_by_one(tmp_path: Path) -> None:
    repository(tmp_path / "project", NODE)
    mended = {"calc.js": NODE["calc.js"].replace("a - b", "a + b")}
    wanted = plan("", "mends test/calc.test.js::adds", "tests test/calc.test.js::doubles")
    played = await play(
        tmp_path, script(tmp_path, wanted, code(mended), code(mended), ACCEPT), "iterate", rounds=2
    )
    found = [event.detail for event in played.events if isinstance(event, EvidenceFound)]
    assert found == ["1 failed before, 1 passed now", "1 passed"]
    assert played.ended.reason == "done"
    assert "failed before too: test/calc.test.js::of old" in report_table(fold_events(played.events))


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
async def test_a_suite_named_by_its_command_is_mended_as_a_whole(tmp_path: Path) -> None:
    tests = NODE["test/calc.test.js"].replace("test('of old', () => assert.ok(calc.version));\n", "")
    repository(tmp_path / "project", {**NODE, "test/calc.test.js": tests})
    mended = {"calc.js": NODE["calc.js"].replace("a - b", "a + b")}
    model = script(tmp_path, plan("", "mends npm test"), code(mended), code(mended), ACCEPT)
    played = await play(tmp_path, model, "iterate", rounds=2)
    found = [event.detail for event in played.events if isinstance(event, EvidenceFound)]
    assert found == ["1 failed, 1 passed before, 2 passed now"]
    assert played.ended.reason == "done"


GO = {
    "go.mod": "module calc\n\ngo 1.19\n",
    "calc.go": "package calc\n\nfunc Add(a, b int) int { return a - b }\n",
    "calc_test.go": """\
package calc

import "testing"

func TestAdd(t *testing.T) {
	if Add(2, 3) != 5 {
		t.Fatal("two and three are five")
	}
}

func TestOfOld(t *testing.T) { t.Fatal("was red before") }

func TestZero(t *testing.T) {
	if Add(0, 0) != 0 {
		t.Fatal("nothing is nothing")
	}
}
""",
}


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
async def test_tests_of_go_are_known_one_by_one(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", GO)
    mended = {"calc.go": GO["calc.go"].replace("a - b", "a + b")}
    wanted = plan("", "mends calc::TestAdd")
    model = script(tmp_path, wanted, code(mended), code(mended), ACCEPT)
    played = await play(
        tmp_path, model, "iterate", rounds=2, change=lambda team: replace(team, limits=Limits(seconds=120))
    )
    found = [event.detail for event in played.events if isinstance(event, EvidenceFound)]
    assert found == ["1 failed before, 1 passed now"]
    assert played.ended.reason == "done"
    assert "failed before too: calc::TestOfOld" in report_table(fold_events(played.events))
    assert git(project, "status", "--porcelain", "-uall") == " M calc.go\n"


async def test_a_check_that_nothing_can_run_is_refused_while_the_plan_can_change(tmp_path: Path) -> None:
    repository(tmp_path / "project", FILES)
    wrong = plan(
        "",
        "command lint-of-nobody src => ok",
        "command python -m xgboost src => ok",
        "command A=1 python -m calc.of_tomorrow => ok",
        "mends tests/test_none.py::test_add",
    )
    model = script(tmp_path, wrong, MENDS, code(SHOWN))
    played = await play(tmp_path, model, "iterate", lambda event: isinstance(event, PlanProposed))
    (refusal,) = played.refusals
    assert refusal == (
        "there is no command lint-of-nobody, there is no module xgboost and the base has no tests/test_none.py: "
        "name checks that can run in this project as it is"
    )
    assert any(isinstance(event, PlanProposed) for event in played.events)


NEVER = {
    "a conftest for another pytest": {"tests/conftest.py": "def pytest_ignore_collect(path, config): ...\n"},
    "a conftest of a missing package": {"tests/conftest.py": "import freezegun\n"},
}
"""Projects whose tests cannot even start where programs run."""


@pytest.mark.parametrize("why", NEVER)
async def test_a_suite_that_cannot_start_is_told_to_the_planner_and_demanded_of_nobody(
    tmp_path: Path, why: str
) -> None:
    repository(tmp_path / "project", {**FILES, **NEVER[why]})
    example = plan("", "example calc.add(2, 3) => 5", "held calc.add(5, 3) => 8")
    model = script(tmp_path, MENDS, example, code(SHOWN), code(SHOWN), ACCEPT)
    played = await play(tmp_path, model, "iterate", rounds=2)
    refused = next(one for one in played.events if isinstance(one, ReplyRefused))
    assert refused.role == "planner"
    assert "the project's tests do not start here" in refused.reason
    assert ".venv" in refused.reason
    assert played.ended.reason == "done", shortcomings(fold_events(played.events))
    assert played.told.count("modules/septet_pytest.py") < 9, "tracebacks of the test runner are cut"
    assert "the project's tests start neither before the change nor now" in report_table(
        fold_events(played.events)
    )


async def test_a_suite_that_the_change_keeps_from_starting_is_not_done(tmp_path: Path) -> None:
    repository(tmp_path / "project", FILES)
    broken = {**SHOWN, "conftest.py": "import freezegun\n"}
    model = script(tmp_path, plan("", "example calc.add(2, 3) => 5"), code(broken), code(broken), ACCEPT)
    played = await play(tmp_path, model, "iterate", rounds=2)
    assert not any(isinstance(event, ChatEnded) and event.reason == "done" for event in played.events)
    (why,) = shortcomings(fold_events(played.events))
    assert why == "1 test that passed before is gone (tests/test_calc.py::test_double)"


async def test_the_autocoder_takes_a_baseline_where_a_test_is_to_be_mended(tmp_path: Path) -> None:
    project = repository(
        tmp_path / "project", {**FILES, "tests/test_calc.py": TESTS.rpartition("\n\n\ndef")[0] + "\n"}
    )
    decision = {"wrong": "code", "item": "P1", "why": "two and three are five"}
    wish = {"path": "src/calc/__init__.py", "old": "a - b", "new": "a + b", "decision": decision}
    model = script(tmp_path, MENDS, call("edit_text", wish), ACCEPT)
    played = await play(tmp_path, model, "autocoder", rounds=3)
    found = [event for event in played.events if isinstance(event, EvidenceFound)]
    assert (found[-1].passed, found[-1].detail) == (True, "1 failed before, 1 passed now")
    assert played.ended.reason == "done"
    assert git(project, "status", "--porcelain", "-uall") == " M src/calc/__init__.py\n"


async def test_a_delivery_is_checked_in_the_sandbox_that_it_is_given(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("no sandbox shows this\n")
    seen = f"from pathlib import Path\n\n\ndef test_outside():\n    assert Path({str(outside)!r}).exists()\n"
    repository(tmp_path / "project", {**FILES, "tests/test_outside.py": seen})
    made = {**SHOWN, "NOTES.md": "add adds\n"}
    model = script(tmp_path, MENDS, code(made), code(made), ACCEPT)
    played = await play(tmp_path, model, "iterate", rounds=2, unsafe=True)
    assert played.ended.reason == "done"
    async with open_session(home_in(tmp_path)) as session:
        await session.undo("c")
        done = await session.deliver("c", ["src/calc/__init__.py"], unsafe=True)
        assert done is not None
        assert done.unproven == ()
        await session.undo("c")
        done = await session.deliver("c", ["src/calc/__init__.py"])
        assert done is not None
        assert done.unproven


class CountingSandbox:
    """The real sandbox; counts the suites that it has run to their end, and tells of the first."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.suites, self.first = sandbox, 0, anyio.Event()

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        result = await self.sandbox.run(job, listen)
        if job.tests and job.only != START_ONLY:
            self.suites += 1
            self.first.set()
        return result


async def test_a_check_before_handing_in_knows_what_failed_on_the_base(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", FILES)
    edits = {"edits": [{"path": "src/calc/__init__.py", "old": "return a - b", "new": "return a + b"}]}
    mend: dict[str, object] = {
        "role": "coder",
        "say": "It adds now.",
        "calls": [{"name": "edit", "arguments": edits}, {"name": "check", "arguments": {"ready": True}}],
    }
    played = await play(
        tmp_path,
        script(tmp_path, MENDS, mend, ACCEPT),
        "iterate",
        rounds=2,
        change=lambda team: replace(team, members=tuple(replace(one, form="tools") for one in team.members)),
    )
    assert played.ended.reason == "done"
    runs = [event.purpose for event in played.events if isinstance(event, RunFinished)]
    assert runs.count("baseline") == 1
    assert git(project, "status", "--porcelain", "-uall") == " M src/calc/__init__.py\n"


@pytest.mark.parametrize("edited", [False, True])
async def test_the_suite_runs_on_the_base_beside_planning(tmp_path: Path, edited: bool) -> None:
    project = repository(tmp_path / "project", FILES)
    model = script(tmp_path, MENDS, code(SHOWN), code(SHOWN), ACCEPT)
    async with open_session(home_in(tmp_path)) as session:
        team = replace(crew("iterate"), approve="ask", members=with_model(crew("iterate"), model).members)
        await session.start("do it", team, project, "c")
        sandbox = CountingSandbox(await session.sandbox())

        async def agree(state: State, record: Record) -> Event | None:
            with anyio.fail_after(120):
                await sandbox.first.wait()  # before anything was written, or even agreed
            if edited and not state.work.versions:
                fill(project, {"src/calc/more.py": "more = 1\n"})
            return await always_agree(state, record)

        async with aclosing(session.perform("c", sandbox, agree)) as performance:
            events = [recorded.event async for recorded in performance]
    runs = [event for event in events if isinstance(event, RunFinished)]
    assert runs[0].purpose == "baseline"
    assert events.index(runs[0]) > next(i for i, one in enumerate(events) if isinstance(one, VersionWritten))
    hearing = ("tests", "baseline", "special cases")  # the last hears what the tests ask
    suites = [run for run in runs if run.purpose.startswith(hearing)]
    assert sandbox.suites == len(suites) + edited  # of another base the runner takes another baseline
    assert isinstance(events[-1], ChatEnded)
    assert events[-1].reason == "done"
