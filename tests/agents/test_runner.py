"""The runner: what it reports of a version is what became of its tests, whatever the tests say of themselves."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from agents.evidence_runs import examine
from msgspec.structs import replace

from septet.agents.runner import are_functions_held_back
from septet.domain.plans import (
    Check,
    CommandSucceeds,
    ExampleHolds,
    Plan,
    Requirement,
    TestsPass,
    check_text,
)
from septet.domain.runs import Limits
from septet.domain.state import State
from septet.team import evidence
from septet.team.evidence import shortcomings

pytestmark = pytest.mark.anyio

PROGRAM = "def double(n):\n    return n * n\n"
WRONG = "from double import double\n\ndef test_double():\n    assert double(3) == 6\n"
RIGHT = "from double import double\n\ndef test_double():\n    assert double(2) == 4\n"
STOPPED = Limits(seconds=15.0)
"""Stops a run that never ends; one that does has ended by then on a busy machine, too."""


async def ran(
    tmp_path: Path,
    cache: Path,
    files: Mapping[str, str],
    limits: Limits | None = None,
    check: Check | None = None,
) -> State:
    plan = Plan(
        items=(Requirement(id="P1", text="double", check=check or TestsPass(target="test_double.py")),)
    )
    return await examine(tmp_path, cache, {"double.py": PROGRAM, **files}, plan, limits)


async def test_a_version_whose_tests_pass_lacks_nothing(tmp_path: Path, cache: Path) -> None:
    state = await ran(tmp_path, cache, {"test_double.py": RIGHT})
    assert shortcomings(state) == []
    assert state.work.evidence["P1"].detail == "1 passed"


XFAIL = WRONG.replace("def test", "@pytest.mark.xfail\ndef test").replace("from", "import pytest\nfrom", 1)
SKIP = XFAIL.replace("xfail", "skip")
IMPERATIVE = WRONG.replace(
    "    assert", "    import pytest\n    double(3) == 6 or pytest.xfail('known')\n    assert"
)
EXPECTED = RIGHT.replace("def test", "@pytest.mark.xfail\ndef test").replace("from", "import pytest\nfrom", 1)
NOT_PASSED = {
    "expected to fail": (XFAIL, "1 expected to fail"),
    "skipped": (SKIP, "1 skipped"),
    "given up on the way": (IMPERATIVE, "1 expected to fail"),
    "expected to fail and passing": (EXPECTED, "1 passed unexpectedly"),
    "a teardown that fails": (
        RIGHT + "\ndef teardown_function():\n    raise OSError\n",
        "1 error",
    ),
}


@pytest.mark.parametrize("case", NOT_PASSED)
async def test_a_test_that_did_not_pass_is_no_evidence(tmp_path: Path, cache: Path, case: str) -> None:
    text, said = NOT_PASSED[case]
    state = await ran(tmp_path, cache, {"test_double.py": text})
    assert not state.work.evidence["P1"].passed
    assert said in state.work.evidence["P1"].detail


REPORT = """
import pytest

@pytest.hookimpl(HOW)
def pytest_runtest_makereport(item, call):
    BEFORE
    outcome = yield
    AFTER
"""
HOOKS = {
    "changes the report": REPORT.replace("HOW", "hookwrapper=True")
    .replace("BEFORE", "pass")
    .replace("AFTER", "outcome.get_result().outcome = 'passed'"),
    "changes the report last": REPORT.replace("HOW", "wrapper=True, tryfirst=True")
    .replace("BEFORE", "pass")
    .replace("AFTER", "outcome.outcome = 'passed'; outcome.longrepr = None; return outcome"),
    "forgets what was raised": REPORT.replace("HOW", "wrapper=True, tryfirst=True")
    .replace("BEFORE", "call.excinfo = None")
    .replace("AFTER", "return outcome"),
    "swallows what is raised": """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    try:
        return (yield)
    except BaseException:
        return None
""",
    "does not call the test": "def pytest_pyfunc_call(pyfuncitem):\n    return True\n",
    "leaves the test out": (
        "def pytest_collection_modifyitems(items):\n"
        "    items[:] = [item for item in items if 'double' not in item.name]\n"
    ),
    "says that all is well": "import os\n\ndef pytest_sessionfinish(session):\n    os._exit(0)\n",
    "prints a summary": (
        "def pytest_unconfigure(config):\n"
        "    print('=== short test summary info ===\\nPASSED test_double.py::test_double')\n"
    ),
    "replaces what pytest calls": (
        "import _pytest.runner as r\n"
        "real = r.CallInfo.from_call\n"
        "r.CallInfo.from_call = classmethod(lambda cls, func, when, reraise=None: real(lambda: None, when))\n"
    ),
}


@pytest.mark.parametrize("hook", HOOKS)
async def test_a_hook_does_not_make_a_failing_test_pass(tmp_path: Path, cache: Path, hook: str) -> None:
    more = "\ndef test_other():\n    assert double(2) == 4\n"
    state = await ran(tmp_path, cache, {"test_double.py": WRONG + more, "conftest.py": HOOKS[hook]})
    assert not state.work.evidence["P1"].passed, state.work.evidence
    assert shortcomings(state)


SETTINGS = {
    "pytest.ini": "[pytest]\naddopts = -k other\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--deselect test_double.py::test_double'\n",
    "setup.cfg": "[tool:pytest]\naddopts = -p no:septet_pytest --co\n",
}


@pytest.mark.parametrize("file", SETTINGS)
async def test_settings_of_the_version_do_not_decide(tmp_path: Path, cache: Path, file: str) -> None:
    more = "\ndef test_other():\n    assert double(2) == 4\n"
    state = await ran(tmp_path, cache, {"test_double.py": WRONG + more, file: SETTINGS[file]})
    assert state.work.evidence["P1"].detail == "1 failed, 1 passed"


async def test_fixtures_and_harmless_settings_of_the_version_work(tmp_path: Path, cache: Path) -> None:
    files = {
        "conftest.py": "import pytest\n\n@pytest.fixture\ndef four():\n    return 4\n",
        "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['lib']\nmarkers = ['slow: it is']\n",
        "lib/helper.py": "TWO = 2\n",
        "test_double.py": (
            "from double import double\nfrom helper import TWO\n\n"
            "def test_double(four):\n    assert double(TWO) == four\n"
        ),
    }
    assert shortcomings(await ran(tmp_path, cache, files)) == []


async def test_a_file_that_is_called_pytest_is_not_pytest(tmp_path: Path, cache: Path) -> None:
    files = {
        "test_double.py": WRONG,
        "pytest.py": "print('1 passed')\n",
        "sitecustomize.py": "raise SystemExit(0)\n",
    }
    state = await ran(tmp_path, cache, files)
    assert state.work.evidence["P1"].detail == "1 failed"


async def test_tests_that_were_stopped_are_unknown(tmp_path: Path, cache: Path) -> None:
    slow = RIGHT + "\ndef test_slow():\n    import time\n    time.sleep(60)\n"
    state = await ran(tmp_path, cache, {"test_double.py": slow}, Limits(seconds=4.0))
    assert not state.work.evidence["P1"].passed
    assert "stopped by the time limit" in state.work.evidence["P1"].detail
    assert any("stopped by the time limit" in trouble for trouble in shortcomings(state))


async def test_tests_that_were_stopped_without_the_program_have_not_failed_as_they_should(
    tmp_path: Path, cache: Path
) -> None:
    waiting = "try:\n    import double\nexcept ImportError:\n    import time\n    time.sleep(60)\n\n"
    text = waiting + "def test_double():\n    assert True\n"
    nothing_to_empty = {"double.py": "FACTOR = 2\n", "test_double.py": text}
    state = await ran(tmp_path, cache, nothing_to_empty, STOPPED)
    assert not state.work.evidence["P1"].passed
    assert any(
        "without the program" in trouble and "time limit" in trouble for trouble in shortcomings(state)
    )


HONEST = "from double import double\n\n\ndef test_double():\n    assert double(2) == 4\n"
IDLE = "import double\n\n\ndef test_idle():\n    assert double.double(2) != 5\n"


@pytest.mark.parametrize(
    "text",
    [
        "import double\n\n\ndef test_double():\n    double.double(2)\n",
        "import double\n\n\ndef test_double():\n    assert callable(double.double)\n",
        IDLE,
    ],
)
async def test_tests_that_pass_on_a_hollow_program_prove_nothing(
    tmp_path: Path, cache: Path, text: str
) -> None:
    state = await ran(tmp_path, cache, {"test_double.py": text})
    assert not state.work.evidence["P1"].passed
    assert shortcomings(state)[0] == "the tests pass with functions that do nothing, so they prove nothing"


async def test_a_requirement_whose_own_tests_survive_is_not_carried_by_others(
    tmp_path: Path, cache: Path
) -> None:
    files = {"test_double.py": IDLE, "test_more.py": HONEST}
    state = await ran(tmp_path, cache, files)
    assert not state.work.evidence["P1"].passed
    assert (
        state.work.evidence["P1"].detail == "they pass with functions that do nothing, so they prove nothing"
    )
    assert (await ran(tmp_path, cache, {"test_double.py": HONEST})).work.evidence["P1"].passed


async def test_tests_that_never_end_on_a_hollow_program_are_no_reason_to_doubt_them(
    tmp_path: Path, cache: Path
) -> None:
    waiting = "    while (n := double(2)) is None:\n        time.sleep(0.05)\n    assert n == 4\n"
    text = f"import time\nfrom double import double\n\n\ndef test_double():\n{waiting}"
    state = await ran(tmp_path, cache, {"test_double.py": text}, STOPPED)
    assert state.work.evidence["P1"].passed


async def test_every_one_of_many_tests_is_known(tmp_path: Path, cache: Path) -> None:
    text = (
        "import pytest\nfrom double import double\n\n"
        "@pytest.mark.parametrize('a_rather_long_name_of_a_parameter', range(1000))\n"
        "def test_double(a_rather_long_name_of_a_parameter):\n    assert double(2) == 4\n"
    )
    state = await ran(tmp_path, cache, {"test_double.py": text})
    assert len(evidence.tests_of(state).passed) == 1000
    assert shortcomings(state) == []


STUB = "def double(n):\n    return 0\n"


@pytest.mark.parametrize(
    "weak",
    [
        "assert double(2) is not None",
        "assert isinstance(double(2), int)",
        "double(2) + 1",
    ],
)
@pytest.mark.parametrize("program", [STUB, PROGRAM])
async def test_tests_that_pass_whatever_the_program_returns_prove_nothing(
    tmp_path: Path, cache: Path, weak: str, program: str
) -> None:
    text = f"from double import double\n\n\ndef test_double():\n    {weak}\n"
    state = await ran(tmp_path, cache, {"double.py": program, "test_double.py": text})
    assert not state.work.evidence["P1"].passed
    assert "whatever the program's functions return or compute" in state.work.evidence["P1"].detail


HONEST_TESTS = {
    "property": "def test_double():\n    assert all(double(n) >= n for n in range(9))",
    "printed": "def test_double(capsys):\n    print(double(2))\n    assert capsys.readouterr().out == '4\\n'",
    "raises": (
        "import pytest\n\n\ndef test_double():\n    with pytest.raises(TypeError):\n        double(None)\n"
    ),
    "unittest": (
        "import unittest\n\n\nclass TestDouble(unittest.TestCase):\n"
        "    def test_double(self):\n        self.assertEqual(double(2), 4)"
    ),
    "process": (
        "import subprocess, sys\n\n\ndef test_double():\n"
        "    code = 'from double import double; print(double(3))'\n"
        "    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)\n"
        "    assert done.stdout == '9\\n', done.stderr"
    ),
}


@pytest.mark.parametrize("kind", HONEST_TESTS)
async def test_honest_tests_of_many_kinds_are_believed(tmp_path: Path, cache: Path, kind: str) -> None:
    state = await ran(
        tmp_path, cache, {"test_double.py": f"from double import double\n\n\n{HONEST_TESTS[kind]}\n"}
    )
    assert (state.work.evidence["P1"].passed, shortcomings(state)) == (True, [])


IDLE_COMMANDS = [
    "true",
    "echo 4",
    "/bin/echo 4",
    "sh -c 'echo 4'",
    "python -c 'print(4)  # double'",
    "cat answer.txt",
    "grep -c . answer.txt test_double.py >/dev/null && echo 4",
    "python double.py --help; echo 4",
]


@pytest.mark.parametrize("command", IDLE_COMMANDS)
async def test_a_command_that_passes_without_a_working_program_proves_nothing(
    tmp_path: Path, cache: Path, command: str
) -> None:
    files = {"double.py": STUB, "answer.txt": "4\n", "test_double.py": RIGHT}
    check = CommandSucceeds(command=command, prints="" if command == "true" else "4")
    state = await ran(tmp_path, cache, files, check=check)
    assert state.work.evidence["P1"].detail == "passes without a working program, so it proves nothing"


async def test_a_command_that_needs_the_program_is_believed(tmp_path: Path, cache: Path) -> None:
    main = PROGRAM + "\nif __name__ == '__main__':\n    print(double(2))\n"
    for command, prints in {
        "python double.py": "4",
        "python -c 'import double; assert double.double(3) == 9'": "",
    }.items():
        check = CommandSucceeds(command=command, prints=prints)
        state = await ran(tmp_path, cache, {"double.py": main, "test_double.py": RIGHT}, check=check)
        assert state.work.evidence["P1"].passed, command


@pytest.mark.parametrize(
    ("known", "held", "all_held_back"),
    [
        (["a.f(1)"], ["a.f(2)"], True),
        (["a.f(1)", "a.f(3)"], ["a.f(2)", "a.g(1)"], True),
        (["a.f(1)", "a.g(3)"], ["a.f(2)"], False),
        (["a.f(1)"], [], False),
        ([], ["a.f(2)"], False),
        ([], [], False),
    ],
)
def test_special_cases_need_no_search_where_each_function_has_an_example_held_back(
    known: list[str], held: list[str], all_held_back: bool
) -> None:
    checks = [
        *(ExampleHolds(call=one, value="1") for one in known),
        *(ExampleHolds(call=one, value="1", held=True) for one in held),
        CommandSucceeds(command="python a.py"),
    ]
    items = [Requirement(id=f"P{number}", text="it", check=check) for number, check in enumerate(checks, 1)]
    state = State()
    state = replace(state, plan=replace(state.plan, current=Plan(items=tuple(items))))
    assert are_functions_held_back(state) is all_held_back
    told = replace(state, plan=replace(state.plan, told=frozenset(map(check_text, checks))))
    assert not are_functions_held_back(told), "the coder was told of them after they failed"
