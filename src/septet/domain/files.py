"""Files as the log stores them: a path inside the workspace and the address of the content."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Literal

from septet.common.languages import run_command_prefix
from septet.common.values import Value

ANY = "*"
"""Matches any content, if its sha256 is unknown."""


class FileRef(Value):
    """A file of a version; the content is a blob."""

    path: str
    sha256: str
    size: int


class FileChange(Value):
    """What a run did to a file of the workspace. `sha256` is empty if the file is deleted or too big."""

    path: str
    kind: Literal["new", "changed", "deleted"]
    size: int = 0
    sha256: str = ""


class Layout(Value):
    """The target state of a workspace: the files of a version, and files that may be removed.

    A file is removed only if its digest is in `removable`. If `replaceable` is given, a file is replaced only if its
    digest is in there.
    """

    files: tuple[FileRef, ...] = ()
    removable: Mapping[str, tuple[str, ...]] = {}
    replaceable: Mapping[str, tuple[str, ...]] | None = None

    def may_replace(self, path: str, digest: str) -> bool:
        """Whether a file with this digest ("" for no file) may be replaced."""
        return not digest or self.replaceable is None or is_expected(self.replaceable, path, digest)


class WorkspaceDelta(Value):
    """The difference between a version and the base, and what earlier runs and versions left behind."""

    files: tuple[FileRef, ...] = ()
    deleted: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()

    @property
    def paths(self) -> set[str]:
        return {*(file.path for file in self.files), *self.deleted}


def is_expected(expected: Mapping[str, tuple[str, ...]], path: str, digest: str) -> bool:
    known = expected.get(path, ())
    return digest in known or ANY in known


def main_of(
    files: Iterable[FileRef], run: str = "", languages: Mapping[str, str] | None = None
) -> FileRef | None:
    """Return the file that starts the program: the one that `run` names, main.py, or the first that is no test."""
    known = [
        file
        for file in files
        if run_command_prefix(file.path, languages) and not file.path.startswith("test_")
    ]
    python = [file for file in known if file.path.endswith(".py")]
    programs = [*python, *(file for file in known if file not in python)]
    named = [file for file in programs if file.path in run.split()]
    mains = [file for file in programs if file.path.startswith("main.")]
    return next(iter([*named, *mains, *programs]), None)


def is_test(path: str) -> bool:
    """Whether it is a test by pytest's naming convention or that of other languages (`clock.test.js`)."""
    name = path.rsplit("/", 1)[-1]
    stem = name.partition(".")[0]
    return name == "conftest.py" or stem.startswith("test_") or stem.endswith("_test") or ".test." in name


TEST_FOLDERS = frozenset(
    """
    test tests testing __tests__ __mocks__ __fixtures__ __snapshots__ spec specs unit_test unit_tests unittests
    integration_test integration_tests functional_tests acceptance_tests system_tests end_to_end e2e e2e_tests
    test_data testdata test_utils testutils test_helpers cypress
    """.split()
)


def belongs_to_tests(path: str) -> bool:
    """Whether it is a test, or a file beside the tests that may influence their outcome."""
    return is_test(path) or not TEST_FOLDERS.isdisjoint(path.lower().split("/")[:-1])


def tree_of(files: Iterable[FileRef], moment: str = "") -> str:
    """Return one hash for a set of files: evidence counts only for the tree that it was found on.

    `moment` distinguishes equal files at different times, if what came before them matters.
    """
    digest = sha256(moment.encode())
    for file in sorted(files, key=lambda file: file.path):
        digest.update(f"{file.path}\0{file.sha256}\n".encode())
    return digest.hexdigest()
