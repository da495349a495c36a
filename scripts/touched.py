"""Which tests call which functions of ours: kept in a cache outside of the repository, for `scripts/mutants.py`.

python scripts/touched.py [TEST FILES…]    run them once, and keep what each test of theirs called

Each function of the package gets a first statement that marks it in a file which all processes share, so that what
programs do which a test starts, and kills, counts as well. Of programs that run inside the sandbox, where nothing of
that can be reached, the kernel tells that their file was opened: all of their functions count then. Sources are put
back whatever happens; they have to be clean, so work in a checkout of your own. A test file that has not changed since
is not run again.
"""

import argparse
import ast
import ctypes
import hashlib
import json
import mmap
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from itertools import groupby, islice
from pathlib import Path
from types import FrameType
from typing import TypedDict

import pytest

ROOT = Path(__file__).absolute().parent.parent
SOURCE = ROOT / "src" / "septet"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "septet-mutants"
APART = ("sandboxes/inside/", "__main__.py")
"""Programs of their own, which know nothing of the package."""
PROGRAMS = ("sandboxes/inside/*.py", "agents/trial_program.py")
"""Those that run inside the sandbox: they are read or mounted, and cannot mark anything."""
MARKER = SOURCE / "_touched.py"
"""The module that every source imports while it is marked."""
SHARED = ROOT / ".touched"
HEAD = """try:
    from septet._touched import touched as _touched
except ImportError:
    _touched = {}
"""
MARKED = """import mmap
from pathlib import Path

try:
    with Path(FILE).open("r+b") as _file:
        touched = mmap.mmap(_file.fileno(), 0)
except OSError:
    touched = {}
"""


class Touched(TypedDict):
    """What is kept of a test file: its tests' processor seconds, and the numbers of the functions that each called."""

    functions: list[str]
    tests: dict[str, tuple[float, list[int]]]


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions_of(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Each function by its whole name."""

    def within(node: ast.AST, name: str) -> Iterator[tuple[str, Function]]:
        for one in ast.iter_child_nodes(node):
            inner = f"{name}.{one.name}" if isinstance(one, Function | ast.ClassDef) else name
            if isinstance(one, Function):
                yield inner, one
            yield from within(one, inner)

    return within(tree, "")


def function_names(path: Path) -> list[str]:
    module = str(path.relative_to(SOURCE))
    return [module + name for name, _ in functions_of(ast.parse(path.read_text()))]


def marked(source: str, first: int) -> str:
    """The source with a mark at the beginning of each function, counted from this number."""
    tree, lines = ast.parse(source), source.splitlines(keepends=True)
    places = [
        (start_of(body_of(node)), f"_touched[{number}] = 1")
        for number, (_, node) in enumerate(functions_of(tree), start=first)
    ]
    head = [one for one in tree.body if not is_prelude(one)]
    for (line, column), mark in sorted(places, reverse=True):
        before = lines[line - 1].encode()[:column].decode()
        after = lines[line - 1].encode()[column:].decode()
        end = f"\n{before}" if before.isspace() else "; "
        lines[line - 1] = f"{before}{mark}{end}{after}"
    if head:
        lines.insert(start_of(head[0])[0] - 1, HEAD)
    return "".join(lines)


def is_prelude(node: ast.stmt) -> bool:
    """What stands before everything else."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    return is_docstring(node)


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def body_of(node: Function) -> ast.stmt:
    """The first statement that does something, or the only one."""
    return node.body[1] if is_docstring(node.body[0]) and len(node.body) > 1 else node.body[0]


def start_of(node: ast.stmt) -> tuple[int, int]:
    decorators = node.decorator_list if isinstance(node, Function | ast.ClassDef) else []
    return min((one.lineno, node.col_offset) for one in (node, *decorators))


def sources() -> list[Path]:
    """The modules whose functions are marked."""
    found = sorted(path for path in SOURCE.rglob("*.py") if path != MARKER)
    return [path for path in found if not str(path.relative_to(SOURCE)).startswith(APART)]


def mark_sources() -> list[str]:
    """Marks every function; their names, by the numbers that stand for them."""
    names: list[str] = []
    for path in sources():
        inside = function_names(path)
        path.write_text(marked(path.read_text(), len(names)))
        names += inside
    SHARED.write_bytes(bytes(len(names)))
    MARKER.write_text(MARKED.replace("FILE", repr(str(SHARED))))
    return names


class OpenedFiles:
    """Says which of some files were opened, by whatever process and wherever they are mounted, since it was asked."""

    IN_OPEN = 0x20
    EVENT = struct.Struct("iIII")

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._events = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._paths: dict[int, Path] = {}

    def watch(self, path: Path, original: Path) -> None:
        """From now on, the original counts as opened when this file is."""
        number = self._library.inotify_add_watch(self._events, os.fsencode(path), self.IN_OPEN)
        if number < 0:
            raise OSError(ctypes.get_errno(), "cannot be watched", str(path))
        self._paths[number] = original

    def read(self) -> set[Path]:
        found: set[Path] = set()
        with suppress(BlockingIOError):
            while events := os.read(self._events, 4096):
                found |= {self._paths[watch] for watch, *_ in self.EVENT.iter_unpack(events)}
        return found


def cached_readers() -> list[Callable[[], None]]:
    """What empties the caches of functions that read a file once: each test has to read it as if it were alone."""
    found = [
        one
        for name, module in list(sys.modules.items())
        if name.startswith("septet.")
        for one in vars(module).values()
        if hasattr(one, "cache_clear") and "read_text" in one.__wrapped__.__code__.co_names
    ]
    return [one.cache_clear for one in found]


def restore_sources() -> None:
    MARKER.unlink(missing_ok=True)
    SHARED.unlink(missing_ok=True)
    subprocess.run(["git", "checkout", "-q", "--", "src"], cwd=ROOT, check=True)


def kept(path: Path) -> Path:
    """Where a test file's calls are kept; another place when it has changed."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return CACHE / f"{'.'.join(path.relative_to(ROOT).with_suffix('').parts)}.{digest}.json"


def kept_before(path: Path) -> Path | None:
    """The newest of what is kept of an earlier form of a test file."""
    name = kept(path).name.split(".")
    found = CACHE.glob(".".join([*name[:-2], "*", name[-1]]))
    return max(found, key=lambda one: one.stat().st_mtime, default=None)


class Recorder:
    """A plugin of pytest that notes which functions each test called, in all processes."""

    def __init__(self, shared: mmap.mmap, functions: list[str]) -> None:
        self._shared = shared
        programs = [path for pattern in PROGRAMS for path in sorted(SOURCE.glob(pattern))]
        inside = {path: function_names(path) for path in programs}
        self._functions = [*functions, *(name for names in inside.values() for name in names)]
        numbers = iter(range(len(functions), len(self._functions)))
        self._inside = {path: {*islice(numbers, len(names))} for path, names in inside.items()}
        self._opened = OpenedFiles()
        for path in programs:
            self._opened.watch(path, path)
        self._readers: list[Callable[[], None]] = []
        self._failed: set[str] = set()
        self._tests: dict[str, tuple[float, list[int]]] = {}

    def pytest_collection_finish(self) -> None:
        from septet.sandboxes.interpreters import modules_folder  # as it is marked

        self._readers = cached_readers()
        originals = {path.read_bytes(): path for path in self._inside}
        for copy in modules_folder().glob("*.py"):
            self._opened.watch(copy, originals[copy.read_bytes()])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        for clear in self._readers:
            clear()
        self._opened.read()
        self._shared[:] = bytes(len(self._shared))
        before = sum(os.times()[:4])
        outcome = yield
        if item.nodeid not in self._failed:
            called = {number for number, mark in enumerate(self._shared[:]) if mark}
            called.update(*(self._inside[path] for path in self._opened.read()))
            self._tests[item.nodeid] = (round(sum(os.times()[:4]) - before, 2), sorted(called))
        if nextitem is None or nextitem.path != item.path:
            self.keep(item.path)
        return outcome

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self._failed.add(report.nodeid)

    def keep(self, path: Path) -> None:
        found = Touched(functions=self._functions, tests=self._tests)
        kept(path).write_text(json.dumps(found, separators=(",", ":")))
        print(f"{path.relative_to(ROOT)}: {len(self._tests)} tests", flush=True)
        self._tests = {}


def record(paths: list[Path], functions: list[str]) -> None:
    """Runs test files in a process of their own, and keeps what was called."""
    child = os.fork()
    if child == 0:
        with SHARED.open("r+b") as file:
            recorder = Recorder(mmap.mmap(file.fileno(), 0), functions)
        arguments = ["-q", "-n", "0", "-m", "not torture", "-p", "no:cacheprovider"]
        os._exit(pytest.main([*arguments, *map(str, paths)], plugins=[recorder]))
    try:
        os.waitpid(child, 0)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise


def end(_signal: int, _frame: FrameType | None) -> None:
    """Sources are put back first."""
    sys.exit(143)


def is_clean() -> bool:
    command = ["git", "status", "--porcelain", "src"]
    return not subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("files", nargs="*", type=Path, default=sorted((ROOT / "tests").rglob("test_*.py")))
    given = options.parse_args()
    if not is_clean():
        sys.exit("src has changes that are not committed: marks are written over it")
    signal.signal(signal.SIGTERM, end)
    CACHE.mkdir(parents=True, exist_ok=True)
    try:
        functions = mark_sources()
        left = [path.absolute() for path in given.files if not kept(path.absolute()).exists()]
        for _, paths in groupby(left, lambda path: path.relative_to(ROOT).parts[1]):
            record([*paths], functions)
    finally:
        restore_sources()
    return 0


if __name__ == "__main__":
    sys.exit(main())
