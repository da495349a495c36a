"""Finds the Python modules of a project, and which of them its tests import."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from septet.domain.files import belongs_to_tests, is_test
from septet.workspace.project import project_text
from septet.workspace.scratch import files_below

IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]*))", re.MULTILINE
)
NAME = re.compile(r"[\w.]+")
MOST_MODULES = 400
LARGEST_PROGRAM = 4 << 20
"""Bytes of the base's program that a control changes at most."""


def modules_under_test(root: Path, tests: Iterable[str]) -> dict[str, str]:
    """The modules that these tests import; all modules if none, since the tests may start the program as a command."""
    paths = [path for path in files_below(root) if path.endswith(".py") and not belongs_to_tests(path)]
    wanted = {name.partition(".")[0] for text in tests for name in possible_imports(text)}
    named = [path for path in paths if module_name(root, path).partition(".")[0] in wanted]
    return dict(bounded_texts(root, named or paths))


def bounded_texts(root: Path, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    room = LARGEST_PROGRAM
    for path in list(paths)[:MOST_MODULES]:
        text = project_text(root, path)
        room -= len(text)
        if room < 0:
            return
        yield path, text


def possible_imports(text: str, package: str = "") -> set[str]:
    """Names that a module may import, found by a regular expression, since the file may not parse."""
    names: set[str] = set()
    for origin, members, modules in IMPORT.findall(text):
        home = resolve_relative_import(origin, package)
        names |= {home, *(f"{home}.{member}" for member in NAME.findall(members))} if origin else set()
        names |= set(NAME.findall(modules))
    return {name.strip(".") for name in names} - {""}


def resolve_relative_import(name: str, package: str) -> str:
    """Resolve a relative import: `.x` in the package `a.b` is `a.b.x`, `..x` is `a.x`."""
    inner = name.lstrip(".")
    if not (dots := len(name) - len(inner)):
        return name
    parents = package.split(".")
    return ".".join([*parents[: len(parents) - dots + 1], *([inner] if inner else [])])


def affected_tests(root: Path, paths: Iterable[str], changed: Sequence[str]) -> tuple[str, ...]:
    """Test files that changed, that import a changed module directly or indirectly, or that are named after one."""
    known = sorted({path for path in (*paths, *changed) if path.endswith(".py") and (root / path).is_file()})
    names = {path: module_name(root, path) for path in known}
    users = importers(root, names)
    reached, waiting = set[str](), {names.get(path, "") for path in changed} - {""}
    while waiting:
        reached |= waiting
        waiting = {user for name in waiting for user in users.get(name, ())} - reached
    stems = {Path(path).stem for path in changed}
    shared = [path for path in known if path.endswith("conftest.py")]
    folders = tuple(
        one.removesuffix("conftest.py") for one in shared if one in changed or names[one] in reached
    )
    return tuple(
        path
        for path in known
        if is_test(path)
        and not path.endswith("conftest.py")
        and (names[path] in reached or mirrored(path) in stems or path.startswith(folders))
    )


def importers(root: Path, names: Mapping[str, str]) -> dict[str, set[str]]:
    """The importers of each module by its name."""
    modules, users = set(names.values()), defaultdict[str, set[str]](set)
    for path, name in names.items():
        package = name if path.endswith("__init__.py") else name.rpartition(".")[0]
        for imported in possible_imports(project_text(root, path), package):
            parts = imported.split(".")
            for used in (".".join(parts[:count]) for count in range(1, len(parts) + 1)):
                if used in modules and used != name:
                    users[used].add(name)
    return users


def mirrored(path: str) -> str:
    """The name of the module that a test file is named after."""
    return Path(path).stem.removeprefix("test_").removesuffix("_test")


def module_name(root: Path, path: str) -> str:
    """The import name of a file, from its outermost package."""
    *folders, file = path.split("/")
    names = [] if file == "__init__.py" else [file.removesuffix(".py")]
    while folders and (root / "/".join(folders) / "__init__.py").exists():
        names.insert(0, folders.pop())
    return ".".join(names)
