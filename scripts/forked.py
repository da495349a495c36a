"""Runs tests over changed code, in forks of one process that has collected them, or each time in one of its own.

In a fork the functions of the changed module get the code of its source as it is now, wherever they have got to;
programs that a test starts, also inside the sandbox, read the file themselves. Only what a module does while it is
imported stays as it was: that takes a process of its own (`Apart`), which imports everything anew.
"""

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FunctionType
from typing import Literal, Protocol

import pytest

Outcome = Literal["killed", "hung", "SURVIVED", "no tests", "not run", "late"]
KILLED = ("killed", "hung")
BUSIEST = 90
"""Seconds of the processor for one process; what takes more hangs."""
LONGEST_TEST, LONGEST = 120, 600
"""Seconds by the clock: a test that takes longer fails, and a run of tests is cut off, which proves nothing."""
OPTIONS = ("-x", "-q", "-n", "0", "-m", "not torture", "-o", f"timeout={LONGEST_TEST}")
FOUND_NONE, NOT_REPLACED = 4, 99
"""How pytest ends where a test is not found or its file not imported, and a fork that cannot have the changed code."""
BATCHES = (2, 15)
"""Files that a process of its own imports first, and before the rest: most mutants die in the first run."""


@dataclass(frozen=True)
class Ran:
    """How a run of tests ended, and the first one that failed."""

    outcome: Outcome
    failed: str = ""


class Runner(Protocol):
    """Runs tests up to the first one that fails, over a source that has changed if one is named."""

    def run(self, tests: Sequence[str], changed: Path | None = None) -> Ran: ...


def file_of(test: str) -> str:
    return test.partition("::")[0]


class Apart:
    """Each run is a process of its own, or a few: all files of a run are imported before its first test."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def run(self, tests: Sequence[str], changed: Path | None = None) -> Ran:
        ran = Ran("no tests")
        for some in batches(tests):
            ran = self._run(some)
            if ran.outcome != "SURVIVED":
                break
        return ran

    def _run(self, tests: Sequence[str]) -> Ran:
        with TemporaryDirectory() as cache:
            words = (sys.executable, "-m", "pytest", *OPTIONS, "-o", f"cache_dir={cache}", *tests)
            limited = ["sh", "-c", f'ulimit -t {BUSIEST}; exec "$@"', "sh", *words]
            with subprocess.Popen(
                limited,
                cwd=self._root,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process:
                try:
                    said = process.communicate(timeout=LONGEST)[0].decode(errors="replace")
                except subprocess.TimeoutExpired:
                    return Ran("late")
                finally:
                    end_session(process.pid)
            failed = Path(cache) / "v/cache/lastfailed"
            first = next(iter(json.loads(failed.read_text())), "") if failed.exists() else ""
        return ending(process.returncode, first, said)


def batches(tests: Sequence[str]) -> Iterator[list[str]]:
    files = list(dict.fromkeys(map(file_of, tests)))
    for begin, stop in pairwise((0, *BATCHES, len(files))):
        if some := files[begin:stop]:
            yield [one for one in tests if file_of(one) in some]


def ending(code: int, failed: str, said: str = "") -> Ran:
    """What an exit code means."""
    if code == 0:
        return Ran("SURVIVED")
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return Ran("hung")
    if failed and code in (1, 2, FOUND_NONE):
        return Ran("killed", failed)
    sys.stderr.write(said[-2000:])
    return Ran("not run")


def end_session(leader: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


class Fork(BaseException):
    """Raised in a fork, which leaves the work to its parent and goes on as an ordinary run of pytest."""


class Forks:
    """A plugin of pytest: does its work instead of running the collected tests, which forks of it run."""

    def __init__(self, work: Callable[[Runner], None]) -> None:
        self._work = work
        self._items: dict[str, list[pytest.Item]] = {}
        self._functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        self._session: pytest.Session | None = None
        self.error: BaseException | None = None
        self._told: int | None = None
        """Where a fork says which test failed."""

    @property
    def is_fork(self) -> bool:
        return self._told is not None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        self._session = session
        for item in session.items:
            for name in (item.nodeid, item.nodeid.partition("[")[0], file_of(item.nodeid)):
                self._items.setdefault(name, []).append(item)
        gc.unfreeze()  # what an earlier run in this process has frozen is not among its objects
        for one in gc.get_objects():
            if isinstance(one, FunctionType):
                self._functions.setdefault(key_of(one.__code__), []).append(one)
        gc.freeze()
        try:
            self._work(self)
        except Fork:
            return None
        except BaseException as error:  # pytest would say it where nobody looks
            self.error = error
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self._told:
            os.write(self._told, f"{report.nodeid}\n".encode())

    def run(self, tests: Sequence[str], changed: Path | None = None) -> Ran:
        items = [item for test in tests for item in self._items.get(test, [])]
        if not items:
            return Ran("no tests")
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            self._become_run(writing, list(dict.fromkeys(items)), changed)
        os.close(writing)
        code = wait(child)
        end_session(child)
        failed = os.read(reading, 1 << 16).decode(errors="replace").partition("\n")[0]
        os.close(reading)
        return ending(code, failed) if code is not None else Ran("late")

    def _become_run(self, told: int, items: list[pytest.Item], changed: Path | None) -> None:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (BUSIEST, BUSIEST))
        self._told = told
        assert self._session is not None
        self._session.items[:] = items
        if changed is not None and not self._replace_code(changed):
            os._exit(NOT_REPLACED)
        raise Fork

    def _replace_code(self, path: Path) -> bool:
        """Every function of the module gets its new code; whether that can be done."""
        changed = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        for code in codes_in(changed):
            for function in self._functions.get(key_of(code), []):
                try:
                    function.__code__ = code
                except ValueError:  # it uses other variables of the function around it
                    return False
        return True


def key_of(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """The functions that are made while this runs, and those within them; one line may hold several without a name."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            if not one.co_name.startswith("<"):
                yield one
            yield from codes_in(one)


def wait(child: int) -> int | None:
    """The exit code, or minus the signal that ended it; None if it was cut off."""
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    end_session(child)
    os.waitpid(child, 0)
    return None


def with_forks(files: Sequence[str], work: Callable[[Runner], None]) -> None:
    """Does the work with tests of these files, collected once. What pytest prints is seen by nobody."""
    forks = Forks(work)
    arguments = [*OPTIONS, "-p", "no:cacheprovider", "--continue-on-collection-errors", *files]
    printed, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    code = 1
    try:
        code = pytest.main(arguments, plugins=[forks])
    finally:
        if forks.is_fork:
            os._exit(code)
    os.dup2(printed, 1)
    os.close(printed)
    os.close(nowhere)
    if forks.error is not None:
        raise forks.error
