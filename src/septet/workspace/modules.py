"""The Python modules of a project: what each is called, and which of them tests use."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from septet.domain.files import belongs_to_tests
from septet.workspace.project import project_text
from septet.workspace.scratch import files_below

IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+([\w.]+(?:[ \t]*,[ \t]*[\w.]+)*))", re.MULTILINE
)
MOST_MODULES = 400
LARGEST_PROGRAM = 4 << 20
"""What a control changes of a base, at most."""


def tested_modules(root: Path, tests: Iterable[str]) -> dict[str, str]:
    """The program that these tests import, all of it where they import none: they may start it as a command."""
    paths = [path for path in files_below(root) if path.endswith(".py") and not belongs_to_tests(path)]
    wanted = {name.partition(".")[0] for text in tests for name in imported_names(text)}
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


def imported_names(text: str) -> set[str]:
    """By the look of its lines: a file that cannot be parsed has imports too."""
    found = IMPORT.findall(text)
    return {name.strip() for one in found for name in (one[0] or one[1]).split(",")} - {""}


def module_name(root: Path, path: str) -> str:
    """As an import names it: from the outermost folder that is a package."""
    *folders, file = path.split("/")
    names = [] if file == "__init__.py" else [file.removesuffix(".py")]
    while folders and (root / "/".join(folders) / "__init__.py").exists():
        names.insert(0, folders.pop())
    return ".".join(names)
