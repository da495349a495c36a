"""Tests report over a channel of their own, on every rung: what became of each, whatever they print or end with."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from sandboxes.jobs import tight

from septet.domain.pytest_report import TestReport
from septet.domain.runs import Job, RunResult, Screen
from septet.ports import Sandbox
from septet.sandboxes.interpreters import Interpreters
from septet.sandboxes.job_runner import JobRunner
from septet.sandboxes.rungs.bubblewrap import Bubblewrap

pytestmark = pytest.mark.anyio

KINDS = """
import unittest
import pytest

def test_passes(): pass
def test_fails(): assert 1 == 2
@pytest.mark.xfail
def test_known(): assert False
@pytest.mark.xfail
def test_unexpected(): pass
@pytest.mark.xfail(strict=True)
def test_strict(): pass
@pytest.mark.skip
def test_skipped(): assert False
def test_exits(): raise SystemExit(0)
@pytest.fixture
def broken(): raise OSError
def test_without(broken): pass
@pytest.fixture
def torn():
    yield
    raise OSError
def test_torn(torn): pass
@pytest.mark.parametrize("n", [1, 2])
def test_many(n): assert n == 1

class TestClass:
    def test_inside(self): pass

class Old(unittest.TestCase):
    def test_good(self): self.assertEqual(1, 1)
    def test_bad(self): self.assertEqual(1, 2)
    @unittest.skip("not now")
    def test_later(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.assertEqual(1, 2)
"""
OUTCOMES = {
    "test_passes": "passed",
    "test_fails": "failed",
    "test_known": "xfailed",
    "test_unexpected": "xpassed",
    "test_strict": "failed",
    "test_skipped": "skipped",
    "test_exits": "failed",
    "test_without": "error",
    "test_torn": "error",
    "test_many[1]": "passed",
    "test_many[2]": "failed",
    "TestClass::test_inside": "passed",
    "Old::test_bad": "failed",
    "Old::test_expected": "xfailed",
    "Old::test_good": "passed",
    "Old::test_later": "skipped",
}


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


async def run(cache: Path, workspace: Path, rung: Sandbox | None = None, job: Job | None = None) -> RunResult:
    job_runner = JobRunner(rung or Bubblewrap.detect(), (Interpreters(cache).prepare,))
    wanted = job or Job(command=(), workspace="", limits=tight())
    return await job_runner.run(replace(wanted, workspace=str(workspace), tests=True))


def report_of(result: RunResult) -> TestReport:
    assert result.tests is not None
    return result.tests


async def outcomes(cache: Path, workspace: Path, text: str, **files: str) -> TestReport:
    (workspace / "test_it.py").write_text(text)
    for name, content in files.items():
        (workspace / f"{name}.py").write_text(content)
    return report_of(await run(cache, workspace))


async def test_every_kind_of_outcome_is_told_apart_on_every_rung(
    sandbox: Sandbox, cache: Path, workspace: Path
) -> None:
    (workspace / "test_kinds.py").write_text(KINDS)
    result = await run(cache, workspace, sandbox)
    report = report_of(result)
    found = {case.id.removeprefix("test_kinds.py::"): case.outcome for case in report.cases}
    assert found == OUTCOMES, result.stdout
    assert report.trustworthy
    assert (report.cases[1].phase, report.cases[8].phase) == ("call", "teardown")
    assert result.exit_code == 1
    assert result.changes == ()


async def test_files_that_cannot_be_collected_are_errors_and_those_that_skip_themselves_are_said(
    cache: Path, workspace: Path
) -> None:
    (workspace / "test_a.py").write_text("import no_such_module\n")
    (workspace / "test_b.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    (workspace / "test_c.py").write_text("def test_c(): pass\n")
    report = report_of(await run(cache, workspace))
    assert [(case.id, case.outcome) for case in report.cases] == [
        ("test_a.py", "error"),
        ("test_b.py", "skipped"),
        ("test_c.py::test_c", "passed"),
    ]


FORGED = """
import os
def test_forger():
    for number in range(3, 4096):
        try: os.write(number, b'x 0 {"type": "phase"}\\n')
        except OSError: pass
def test_fails(): assert False
"""
CLOSED = "import os\ndef test_closes(): os.closerange(3, 100)\ndef test_fails(): assert False\n"
ENDED = "import os\ndef test_passes(): pass\ndef test_ends(): os._exit(0)\ndef test_fails(): assert False\n"


@pytest.mark.parametrize("text", [FORGED, CLOSED, ENDED])
async def test_a_report_that_is_spoiled_or_cut_off_is_not_complete(
    cache: Path, workspace: Path, text: str
) -> None:
    report = await outcomes(cache, workspace, text)
    assert not report.complete
    assert "test_it.py::test_fails" not in report.passed


async def test_the_nonce_is_nowhere_that_a_test_can_simply_read(cache: Path, workspace: Path) -> None:
    text = """
import os, sys
def test_looks():
    environ = open('/proc/self/environ', 'rb').read()
    number = dict(entry.split(b'=', 1) for entry in environ.split(b'\\0') if b'=' in entry)[b'SEPTET_REPORT']
    os.write(int(number), b'')
    assert 'SEPTET_REPORT' not in os.environ
    assert sys.stdin is None or not os.read(0, 10)
    words = open('/proc/self/cmdline').read() + environ.decode()
    assert not [word for word in words.replace('=', '\\0').split('\\0') if len(word) == 64]
"""
    report = await outcomes(cache, workspace, text)
    assert report.passed == ("test_it.py::test_looks",), report


async def test_a_process_that_a_test_forks_tells_nothing(cache: Path, workspace: Path) -> None:
    """It goes on as pytest, if nobody stops it."""
    text = """
import os
def test_forks():
    if os.fork():
        os.wait()
def test_next(): pass
"""
    report = await outcomes(cache, workspace, text)
    assert (report.counts, report.complete) == ("2 passed", True)


async def test_hooks_that_could_keep_a_test_from_running_are_named(cache: Path, workspace: Path) -> None:
    hooks = "def pytest_pyfunc_call(pyfuncitem):\n    return True\n\ndef pytest_runtest_setup(item): pass\n"
    report = await outcomes(cache, workspace, "def test_it(): assert False\n", conftest=hooks)
    assert report.hooks == ("conftest.py: pytest_pyfunc_call",)
    assert not report.trustworthy


async def test_a_report_that_a_hook_has_changed_is_not_believed_of_unittest_either(
    cache: Path, workspace: Path
) -> None:
    hook = """
import pytest
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.outcome = "passed"
    return report
"""
    text = "import unittest\nclass Old(unittest.TestCase):\n    def test_bad(self): self.assertEqual(1, 2)\n"
    assert (await outcomes(cache, workspace, text, conftest=hook)).failed == ("test_it.py::Old::test_bad",)


async def test_a_hook_that_a_test_registers_is_named_too(cache: Path, workspace: Path) -> None:
    text = """
class Plugin:
    def pytest_runtest_protocol(self, item): return True
def test_first(request): request.config.pluginmanager.register(Plugin())
def test_fails(): assert False
"""
    report = await outcomes(cache, workspace, text)
    assert report.hooks == ("test_it.py: pytest_runtest_protocol",)
    assert report.passed == ("test_it.py::test_first",)


async def test_tests_of_windows_and_tests_with_a_network_report_too(cache: Path, workspace: Path) -> None:
    (workspace / "test_it.py").write_text("def test_it(): pass\n")
    job = Job(command=(), workspace="", mode=Screen(picture=""), network=("example.org",))
    result = await run(cache, workspace, job=job)
    assert report_of(result).passed == ("test_it.py::test_it",), result


async def test_a_report_is_bounded_by_what_a_run_may_take(cache: Path, workspace: Path) -> None:
    (workspace / "test_it.py").write_text("import time\ndef test_a(): pass\ndef test_b(): time.sleep(300)\n")
    result = await run(cache, workspace, job=Job(command=(), workspace="", limits=tight(seconds=12.0)))
    assert result.stopped_by == "time"
    report = report_of(result)
    assert [(case.id, case.outcome) for case in report.cases] == [
        ("test_it.py::test_a", "passed"),
        ("test_it.py::test_b", "not run"),
    ]
    assert not report.complete


DEEDS = {
    "a.py": "import gc\n\ndef look():\n    gc.get_objects()\n",
    "b.py": "import inspect\n\ndef look():\n    return inspect.stack()\n",
    "c.py": "def look():\n    try:\n        1 / 0\n    except ZeroDivisionError as e:\n"
    "        return e.__traceback__.tb_frame\n",
    "d.py": "from pathlib import Path\n\ndef look():\n    Path('test_all.py').read_text()\n",
    "e.py": "def look():\n    open('/proc/self/cmdline').read()\n",
    "f.py": "def look():\n    look.__code__ = (lambda: 1).__code__\n",
    "g.py": "import sys\n\ndef look():\n    sys.settrace(None)\n",
    "h.py": "def look():\n    exec('import sys; sys._getframe(1)')\n",
    "i.py": "import json\n\ndef look():\n    compile('1', json.__file__, 'eval')\n",
    "j.py": "import ctypes\n\ndef look():\n    ctypes.c_long.from_address(id(look))\n",
    "k.py": "import unittest\n\ndef look():\n    unittest.TestCase.assertEqual = lambda *a: None\n",
    "conftest.py": "def pytest_unconfigure(config):\n    for one in config.pluginmanager.get_plugins():\n"
    "        if type(one).__name__ == 'Reporter':\n            one._send('end', status=0, whole=True)\n",
}
FOUND = {
    "a.py:4 looks through the objects of the interpreter",
    "b.py:4 looks at its callers",
    "b.py:4 reads its tests",
    "c.py:5 looks at its callers",
    "d.py:4 reads its tests",
    "e.py:2 reads how it was started",
    "f.py:2 replaces the code of a function",
    "g.py:4 traces the interpreter",
    "h.py:2 looks at its callers",
    "i.py:4 hides whose code it is",
    "j.py:4 writes into the memory of the interpreter",
    "k.py:4 replaces unittest.case.TestCase.assertEqual",
    "conftest.py:4 writes the report of the tests",
}
LOOKS = (
    "import importlib\nimport pytest\n\n@pytest.mark.parametrize('name', 'abcdefghijk')\n"
    "def test_it(name):\n    importlib.import_module(name).look()\n"
)
ORDINARY = """\
import collections, dataclasses, enum, inspect, logging, traceback, typing, warnings
from pathlib import Path

Point = collections.namedtuple("Point", "x y")
Typed = typing.NamedTuple("Typed", [("x", int)])
Colour = enum.Enum("Colour", "RED GREEN")

@dataclasses.dataclass(frozen=True)
class Box:
    size: int = 1

def work():
    logging.getLogger("x").warning("careful %s", Box())
    warnings.warn("old", stacklevel=2)
    inspect.signature(work)
    inspect.getsource(work)
    Path("kept.txt").write_text("text")
    Path("/proc/self/status").read_text()
    try:
        1 / 0
    except ZeroDivisionError as error:
        print(traceback.format_exc(), error.__traceback__.tb_lineno)
        logging.exception("it failed")
    namespace = {}
    exec(compile("x = 1", "<text>", "exec"), namespace)
    return namespace["x"]
"""


async def test_what_the_program_does_to_the_interpreter_that_tests_it_is_found(
    cache: Path, tmp_path: Path
) -> None:
    for name, text in {**DEEDS, "test_all.py": LOOKS}.items():
        (tmp_path / name).write_text(text)
    report = (await run(cache, tmp_path)).tests
    assert report is not None
    assert set(report.deeds) == FOUND


async def test_ordinary_programs_do_nothing_to_it(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(ORDINARY)
    (tmp_path / "test_work.py").write_text(
        "import gc, sys\nfrom work import work\n\n\ndef test_it():\n    gc.collect()\n    sys._getframe()\n"
        "    open(__file__).read()\n    assert work() == 1\n"
    )
    report = (await run(cache, tmp_path)).tests
    assert report is not None
    assert (report.deeds, report.counts, report.complete) == ((), "1 passed", True)
