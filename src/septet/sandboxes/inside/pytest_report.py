"""Runs pytest inside a sandbox and reports the outcome of every test over a separate channel: a program.

Installed into the sandbox as `septet_pytest.py`; run as `python septet_pytest.py OPTION…` in the workspace, by any
Python that a project has. SEPTET_REPORT names the channel, a descriptor or a path; a nonce comes first on stdin. Each
line is `NONCE NUMBER RECORD`, the record as in `septet.domain.pytest_report`. What a test raises is recorded where
pytest catches it, before any hook sees it. Hooks of the workspace that could prevent a test from running or failing
are reported, and so are packages of the workspace that were imported from elsewhere.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from _pytest import runner as pytest_runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    from septet.sandboxes.inside.pytest_audit import Watcher, is_test
    from septet.sandboxes.inside.pytest_equality import watch_equality

    Send = Callable[..., None]
    PytestInternal: TypeAlias = Any
    """An object of pytest whose type differs between versions."""
else:  # it lies beside this file
    from septet_audit import Watcher, is_test
    from septet_equality import watch_equality

HERE = Path(__file__).resolve().parent
SETTINGS = HERE / "septet_pytest.ini"
FIRST_RESULT_HOOKS = (
    *("pytest_runtestloop", "pytest_runtest_protocol", "pytest_pyfunc_call"),
    *("pytest_pycollect_makeitem", "pytest_make_collect_report"),
)
"""firstresult hooks: an implementation that returns a value stops the others."""
WRAPPABLE_HOOKS = ("pytest_runtest_call",)
"""Hooks whose wrappers can swallow a test's exception."""
LINE_LIST_SETTINGS = ("markers",)
SOURCE_FOLDERS = ("", "src", "lib", "python")
NOT_PACKAGES = {"test", "tests", "docs", "examples", "benchmarks"}
PROJECT_SETTINGS = (
    *(
        "pythonpath",
        "testpaths",
        "python_files",
        "python_classes",
        "python_functions",
        "markers",
        "usefixtures",
    ),
    *("asyncio_mode", "asyncio_default_fixture_loop_scope", "asyncio_default_test_loop_scope", "anyio_mode"),
    *("DJANGO_SETTINGS_MODULE", "django_find_project", "consider_namespace_packages"),
)
"""Settings of a project that say where its tests are and what they need. None of them decides what passes."""


def open_channel() -> tuple[Send, Watcher]:
    """A function that sends a record, and who watches the program. It does nothing in a process that a test forks."""
    nonce = os.read(0, 256).split()[0]
    address = os.environ.pop("SEPTET_REPORT")
    channel = int(address) if address.isdigit() else os.open(address, os.O_WRONLY)
    os.set_inheritable(channel, False)
    owner, number = os.getpid(), 0

    def send(kind: str, **facts: object) -> None:
        nonlocal number
        if os.getpid() != owner:
            return
        if kind != "deed":
            watcher.check_caller(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]  # it is documented
        line = b"%s %d %s\n" % (nonce, number, json.dumps({"type": kind, **facts}).encode())
        number += 1
        while line:
            line = line[os.write(channel, line) :]

    watcher = Watcher(os.getcwd(), lambda deed, where: send("deed", name=deed, where=where))
    return send, watcher


class Reporter:
    """Our plugin, registered before any plugin of the workspace."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._item: object = None
        self._raised: dict[str, str] = {}
        self._hooks: set[tuple[str, str]] = set()
        self._patched: PytestInternal = self._patch(vars(pytest_runner.CallInfo)["from_call"].__func__)
        pytest_runner.CallInfo.from_call = self._patched

    @property
    def is_intact(self) -> bool:
        """Whether our patch of `CallInfo.from_call` is still in place."""
        return vars(pytest_runner.CallInfo).get("from_call") is self._patched

    def _patch(self, original: PytestInternal) -> PytestInternal:
        def from_call(
            cls: PytestInternal,
            func: PytestInternal,
            when: str,
            *arguments: PytestInternal,
            **options: PytestInternal,
        ) -> PytestInternal:
            call = original(cls, func, when, *arguments, **options)
            self._raised[when] = self._outcome(call.excinfo)
            return call

        patched: PytestInternal = classmethod(from_call)
        return patched

    def _outcome(self, raised: PytestInternal) -> str:
        """The outcome by what a test raised. For unittest cases pytest stores it in `_excinfo`."""
        unittest_errors: PytestInternal = getattr(self._item, "_excinfo", None)
        error = raised or (unittest_errors[0] if unittest_errors else None)
        if error is None:
            return ""
        if isinstance(error.value, pytest.skip.Exception):
            return "skipped"
        return "xfail" if isinstance(error.value, pytest.xfail.Exception) else "failed"

    @pytest.hookimpl(tryfirst=True)
    def pytest_itemcollected(self, item: pytest.Item) -> None:
        self._send("item", id=item.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome != "passed":
            self._send("collect", id=report.nodeid or ".", outcome=report.outcome)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        self._item, self._raised = item, {}

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._send(
            "phase",
            id=report.nodeid,
            when=report.when,
            raised=self._raised.get(report.when or "", ""),
            reported=report.outcome,
            expected=hasattr(report, "wasxfail"),
            seconds=round(report.duration, 6),
        )

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.report_workspace_hooks(session.config)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Check the hooks again: a test may have registered some."""
        self.report_workspace_hooks(session.config)
        for name, where in foreign_modules(Path.cwd()):
            self._send("foreign", name=name, where=where)
        for used, hidden in hidden_modules(Path.cwd()):
            self._send("deed", name=f"hides {hidden} from the tests", where=f"{used}:1")

    def report_workspace_hooks(self, config: pytest.Config) -> None:
        for hook in workspace_hooks(config, self):
            if hook not in self._hooks:
                self._hooks.add(hook)
                self._send("hook", name=hook[0], where=hook[1])


def workspace_hooks(config: pytest.Config, own: object) -> Iterator[tuple[str, str]]:
    for name in (*FIRST_RESULT_HOOKS, *WRAPPABLE_HOOKS):
        for hook in getattr(config.hook, name).get_hookimpls():
            wraps = hook.hookwrapper or getattr(hook, "wrapper", False)
            if (
                hook.plugin is not own
                and (wraps or name not in WRAPPABLE_HOOKS)
                and not is_installed(hook.function)
            ):
                yield name, place_of(hook.function)


def foreign_modules(folder: Path) -> Iterator[tuple[str, str]]:
    """Packages of the workspace that were imported from elsewhere: an installed copy was tested."""
    root = folder.resolve()
    for name in sorted(package_names(root)):
        path = Path(getattr(sys.modules.get(name), "__file__", None) or root / name).resolve()
        if root not in path.parents or any(
            part.endswith("-packages") for part in path.relative_to(root).parts
        ):
            yield name, str(path.parent)


def hidden_modules(folder: Path) -> Iterator[tuple[str, str]]:
    """Modules of the program that the tests did not get, with those that they got instead."""
    root = folder.resolve()
    loaded = {
        name: getattr(one, "__file__", None) for name, one in list(sys.modules.items()) if "." not in name
    }
    for name, file in loaded.items():
        used = Path(file).resolve() if file else root
        if root not in used.parents or any(part.endswith("-packages") for part in used.parts):
            continue
        for source in SOURCE_FOLDERS:
            for path in (root / source / f"{name}.py", root / source / name / "__init__.py"):
                is_package = used == path.with_suffix("") / "__init__.py"
                if path != used and not is_package and not is_test(path.name) and path.is_file():
                    yield str(used.relative_to(root)), str(path.relative_to(root))


def package_names(root: Path) -> set[str]:
    """Names of the project's own top-level packages, including those of projects within it."""
    projects = [
        root,
        *(file.parent for depth in ("*", "*/*") for file in root.glob(f"{depth}/pyproject.toml")),
    ]
    folders = [project / name if name else project for project in projects for name in SOURCE_FOLDERS]
    names = {file.parent.name for folder in folders for file in folder.glob("*/__init__.py")}
    return names - set(getattr(sys, "stdlib_module_names", ())) - NOT_PACKAGES


def file_of(function: PytestInternal) -> str:
    """The source file of a function or method."""
    return getattr(getattr(function, "__code__", None), "co_filename", "") or ""


def is_installed(function: PytestInternal) -> bool:
    """Whether a function belongs to pytest or an installed plugin; all others belong to the workspace."""
    path = Path(file_of(function))
    roots = [
        Path(pytest.__file__).resolve().parents[1],
        *(Path(path_entry) for path_entry in sys.path if path_entry.endswith("-packages")),
    ]
    return path.is_file() and any(root in path.resolve().parents for root in roots)


def place_of(function: PytestInternal) -> str:
    path = Path(file_of(function))
    return path.name if path.is_absolute() and Path.cwd() not in path.parents else os.path.relpath(path)


def project_settings(folder: Path) -> dict[str, object]:
    """The project's pytest settings, from the file that pytest itself would choose."""
    for name, section in (("pytest.ini", "pytest"), (".pytest.ini", "pytest")):
        if (folder / name).is_file():
            return ini_settings(folder / name, section)
    if settings := toml_settings(folder / "pyproject.toml"):
        return settings
    for name, section in (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        if settings := ini_settings(folder / name, section):
            return settings
    return {}


def ini_settings(path: Path, section: str) -> dict[str, object]:
    from configparser import ConfigParser, Error

    parser = ConfigParser(interpolation=None)
    parser.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]  # names keep their case
    try:
        parser.read(path, encoding="utf-8")
    except (Error, OSError, UnicodeDecodeError):
        return {}
    return dict(parser[section]) if parser.has_section(section) else {}


def toml_settings(path: Path) -> dict[str, object]:
    try:
        import tomllib

        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
        return tool.get("pytest", {}).get("ini_options", {})
    except (ImportError, OSError, ValueError, AttributeError):
        return {}


def project_options(settings: dict[str, object], folder: Path) -> Iterator[str]:
    for name in PROJECT_SETTINGS:
        if name in settings:
            yield f"--override-ini={name}={setting_text(name, settings[name], folder)}"
    added = words_of(settings.get("addopts", ""))
    for word, following in zip(added, [*added[1:], ""]):  # noqa: B905  a project's Python may be an old one
        if word.startswith("--import-mode"):
            yield word if "=" in word else f"{word}={following}"


def setting_text(name: str, value: object, folder: Path) -> str:
    """A setting in the form of the command line. Paths are relative to the project's settings file."""
    if name == "pythonpath":
        return shlex.join(str(folder / path) for path in words_of(value))
    if isinstance(value, list):
        words = words_of(value)  # pyright: ignore[reportUnknownArgumentType]
        return "\n".join(words) if name in LINE_LIST_SETTINGS else shlex.join(words)
    return str(value)


def words_of(value: object) -> list[str]:
    if isinstance(value, list):
        return [str(word) for word in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    try:
        return shlex.split(str(value))
    except ValueError:
        return []


def main() -> int:
    send, watcher = open_channel()
    reporter = Reporter(send)
    watch_equality(watcher)
    watcher.open()
    folder = Path.cwd()
    sys.path[0] = str(folder)
    own_options = [
        "-c",
        str(SETTINGS),
        "--rootdir=.",  # pytest takes a `$` in it for a variable
        f"--confcutdir={folder}",
        "-p",
        "no:cacheprovider",
    ]
    os.environ.pop("PYTEST_ADDOPTS", None)
    options = [*own_options, *project_options(project_settings(folder), folder), *sys.argv[1:]]
    status = int(pytest.main(options, plugins=[reporter]))
    watcher.close()
    send("end", status=status, whole=reporter.is_intact)
    return status


if __name__ == "__main__":
    sys.exit(main())
