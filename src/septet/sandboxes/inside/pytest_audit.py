"""Watches, by Python's audit events, what files of the workspace do to the interpreter that tests them: a module.

Installed into the sandbox as `septet_audit.py`. No program can take an audit hook back. Reported are deeds that look at
or change who runs a program: its callers, the garbage collector's objects, the code of a function, the files of its
tests, and functions of pytest. It must work with any Python that a project has.
"""

from __future__ import annotations

import builtins
import os
import re
import sys
from _thread import get_ident
from types import FunctionType, ModuleType

from _pytest import config as pytest_config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any, TypeAlias

    Found = Callable[[str, str], None]
    AnyObject: TypeAlias = Any
    """An object of a program that is tested."""

HERE, PYTEST, PLUGGY = (
    os.path.dirname(os.path.realpath(one))
    for one in (__file__, os.path.dirname(pytest_config.__file__), str(sys.modules["pluggy"].__file__))
)
CALLERS, TESTS, START = "looks at its callers", "reads its tests", "reads how it was started"
KNOWN_TO_TESTS = (CALLERS, TESTS, START)
"""A test knows that it is one."""
MACHINERY = {
    "sys._getframe": CALLERS,
    "sys._current_frames": CALLERS,
    "gc.get_objects": "looks through the objects of the interpreter",
    "gc.get_referrers": "looks through the objects of the interpreter",
    "gc.get_referents": "looks through the objects of the interpreter",
    "sys.settrace": "traces the interpreter",
    "sys.setprofile": "traces the interpreter",
    "code.__new__": "makes code of its own",
    "ctypes.cdata": "writes into the memory of the interpreter",
}
"""Events that nobody but a debugger has reason for."""
ATTRIBUTES = {
    ("object.__getattr__", "tb_frame"): CALLERS,
    ("object.__getattr__", "gi_frame"): CALLERS,
    ("object.__setattr__", "__code__"): "replaces the code of a function",
}
LOOKING = (
    "shutil.py",
    "subprocess.py",
    "inspect.py",
    "traceback.py",
    "pathlib.py",
    "_local.py",
    "linecache.py",
    "tokenize.py",
    "codecs.py",
)
"""Modules of the standard library that look on behalf of their caller."""
TEST_FILE = re.compile(r"(?:test_.*|.*_test|conftest)\.py")
OWN_PROCESS = re.compile(
    r"/proc/(?:self|thread-self|\d+)/(?:task/\d+/)?(?:cmdline|environ|comm|exe|maps|mem|fd\b.*)"
)
GUARDED_PACKAGES = (
    "_pytest",
    "pluggy",
    "pytest",
    "unittest",
    "ast",
    "importlib",
    "_frozen_importlib_external",
)
GUARDED_LIBRARIES = ("builtins", "json", "math", "operator", "re", "statistics", "subprocess")
"""Tests judge by these; a program that replaces a part of them answers for them."""
KNOWN_BUILTINS = frozenset(f"builtins.{name}" for name in dir(builtins))


class Watcher:
    """Reports each deed once, as what was done and where; nothing after it was closed."""

    def __init__(self, root: str, found: Found) -> None:
        self.root = os.path.join(os.path.realpath(root), "")
        self._found = found
        self._busy: set[int] = set()
        self._seen: set[tuple[str, str]] = set()
        self._is_open = False

    def open(self) -> None:
        self._is_open = True
        sys.addaudithook(self._hear)

    def close(self) -> None:
        """Name what was replaced for good, and stop."""
        self._busy.add(get_ident())
        for name, function in guarded_functions():
            code: AnyObject = getattr(function, "__code__", None)
            if code is not None and self.is_ours(code.co_filename):
                self.tell(f"replaces {name}", self.place(code.co_filename, code.co_firstlineno))
        self._is_open = False

    def check_caller(self, frame: FrameType | None) -> None:
        """Report if anything but pytest calls the plugin: the report is not the program's to write."""
        if get_ident() in self._busy:
            return
        self._busy.add(get_ident())
        is_plugins = frame is not None and frame.f_code.co_filename.startswith(HERE)
        while frame is not None and frame.f_code.co_filename.startswith((HERE, PLUGGY)):
            frame = frame.f_back
        is_pytests = frame is None or is_installed(frame.f_code.co_filename)
        if not (is_plugins and is_pytests):
            self.tell("writes the report of the tests", self._named_place(frame))
        self._busy.discard(get_ident())

    def _named_place(self, frame: FrameType | None) -> str:
        while frame is not None and not self.is_ours(frame.f_code.co_filename):
            frame = frame.f_back
        return self.place(frame.f_code.co_filename, frame.f_lineno) if frame is not None else "the program"

    def _hear(self, event: str, arguments: tuple[AnyObject, ...]) -> None:
        thread = get_ident()
        if not self._is_open or thread in self._busy:
            return
        self._busy.add(thread)
        try:
            deed = self._deed(event, arguments)
            helpers = () if event.startswith("object.") else LOOKING
            actor = self._actor(caller(), helpers) if deed else None
            if actor is not None and not (deed in KNOWN_TO_TESTS and is_test(actor.f_code.co_filename)):
                self.tell(deed, self.place(actor.f_code.co_filename, actor.f_lineno))
        except Exception:  # noqa: S110  no trouble of ours may become the program's
            pass
        finally:
            self._busy.discard(thread)

    def _deed(self, event: str, arguments: tuple[AnyObject, ...]) -> str:
        if event in MACHINERY:
            return MACHINERY[event]
        if event in ("object.__getattr__", "object.__setattr__"):
            return ATTRIBUTES.get((event, arguments[1]), "")
        if event == "open":
            return self._reading(arguments[0])
        if event in ("subprocess.Popen", "os.system"):
            return TESTS if any(map(is_test, words_of(arguments))) else ""
        if event == "compile" and isinstance(arguments[1], str):
            name = arguments[1]
            return "hides whose code it is" if os.path.isabs(name) and not self.is_ours(name) else ""
        is_internal = event == "ctypes.dlsym" and str(arguments[1]).startswith(("Py", "_Py"))
        return MACHINERY["ctypes.cdata"] if is_internal else ""

    def _reading(self, path: AnyObject) -> str:
        if not isinstance(path, (str, bytes, os.PathLike)):  # old Pythons know no other way
            return ""
        name = os.path.join(self.root, os.fsdecode(path))  # pyright: ignore[reportUnknownArgumentType]
        if OWN_PROCESS.fullmatch(name):
            return START
        return TESTS if name.startswith(self.root) and is_test(name) else ""

    def _actor(self, frame: FrameType | None, helpers: tuple[str, ...]) -> FrameType | None:
        """The frame of the workspace that acts, directly or by a module that looks for its caller."""
        while frame is not None:
            name = frame.f_code.co_filename
            if self.is_ours(name):
                return frame
            is_text = name.startswith("<") and not name.startswith("<frozen")
            if not is_text and os.path.basename(name) not in helpers:
                return None
            frame = frame.f_back
        return None

    def is_ours(self, name: str) -> bool:
        """Whether the file is one of the workspace's own."""
        path = os.path.join(self.root, name)
        return path.startswith(self.root) and "-packages" not in path and not name.startswith("<")

    def place(self, name: str, line: int) -> str:
        return f"{os.path.relpath(os.path.join(self.root, name), self.root)}:{line}"

    def tell(self, deed: str, place: str) -> None:
        if self._is_open and (deed, place) not in self._seen:
            self._seen.add((deed, place))
            self._found(deed, place)


def words_of(arguments: tuple[AnyObject, ...]) -> list[str]:
    """The words of a command, be it a text or a list of texts."""
    given = " ".join(map(str, arguments[:2]))
    return re.split(r"[\s'\",;]+", given)


def caller() -> FrameType:
    """Who did what the hook hears of."""
    return sys._getframe(2)  # pyright: ignore[reportPrivateUsage]  # it is documented


def is_installed(path: str) -> bool:
    """Whether the file belongs to pytest or to an installed plugin."""
    return path.startswith(PYTEST) or "-packages" in path


def is_test(path: str) -> bool:
    return TEST_FILE.fullmatch(os.path.basename(path)) is not None


def guarded_functions() -> Iterator[tuple[str, AnyObject]]:
    """The functions that read, run and judge tests, by name."""
    for library in GUARDED_LIBRARIES:
        if library in sys.modules:
            found = functions_of(library, sys.modules[library])
            yield from ((name, one) for name, one in found if library != "builtins" or name in KNOWN_BUILTINS)
    for module, content in list(sys.modules.items()):
        if module.partition(".")[0] in GUARDED_PACKAGES:
            yield from functions_of(module, content)


def functions_of(name: str, holder: ModuleType | type) -> Iterator[tuple[str, AnyObject]]:
    for key, value in vars(holder).copy().items():
        if isinstance(value, type) and isinstance(holder, ModuleType) and value.__module__ == name:
            yield from functions_of(f"{name}.{key}", value)
        else:
            yield f"{name}.{key}", unwrapped(value)


def unwrapped(value: AnyObject) -> AnyObject:
    if isinstance(value, (classmethod, staticmethod)):  # old Pythons know no other way
        return value.__func__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # whatever it wraps
    return value if isinstance(value, FunctionType) else None
