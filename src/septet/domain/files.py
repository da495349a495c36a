"""Files as the log knows them: a path inside the workspace and the address of the content."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Literal

from septet.common.languages import runner_of
from septet.common.values import Value

ANY = "*"
"""Stands for a content whose sha256 nobody knows."""


class FileRef(Value):
    """A file of a version; the content is a blob."""

    path: str
    sha256: str
    size: int


class FileChange(Value):
    """What a run did to a file of the workspace. `sha256` is empty where the file is gone or too big."""

    path: str
    kind: Literal["new", "changed", "deleted"]
    size: int = 0
    sha256: str = ""


class Layout(Value):
    """How a workspace shall look: the files of a version, and what may go where one of these contents stands.

    Where `replaceable` is told, what stands at a path is replaced only if it is one of those.
    """

    files: tuple[FileRef, ...] = ()
    removable: Mapping[str, tuple[str, ...]] = {}
    replaceable: Mapping[str, tuple[str, ...]] | None = None

    def may_replace(self, path: str, digest: str) -> bool:
        """Whether that content, "" for no file, is the team's own."""
        return not digest or self.replaceable is None or is_expected(self.replaceable, path, digest)


class Delta(Value):
    """A version, as far as it differs from the base, and what runs and versions before it left."""

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
    """The file that starts the program: the one that `run` names, main.py, or the first that is no test."""
    known = [file for file in files if runner_of(file.path, languages) and not file.path.startswith("test_")]
    python = [file for file in known if file.path.endswith(".py")]
    programs = [*python, *(file for file in known if file not in python)]
    named = [file for file in programs if file.path in run.split()]
    mains = [file for file in programs if file.path.startswith("main.")]
    return next(iter([*named, *mains, *programs]), None)


def is_test(path: str) -> bool:
    """By pytest's naming convention, and by the usual one of other languages (`clock.test.js`)."""
    name = path.rsplit("/", 1)[-1]
    stem = name.partition(".")[0]
    return name == "conftest.py" or stem.startswith("test_") or stem.endswith("_test") or ".test." in name


def belongs_to_tests(path: str) -> bool:
    """A test, or something beside the tests that may decide what becomes of them."""
    return is_test(path) or not {"test", "tests"}.isdisjoint(path.split("/")[:-1])


def tree_of(files: Iterable[FileRef], moment: str = "") -> str:
    """One hash for a set of files: evidence counts only for the tree that it was found on.

    `moment` tells apart the same files at different times, where what came before them matters.
    """
    digest = sha256(moment.encode())
    for file in sorted(files, key=lambda file: file.path):
        digest.update(f"{file.path}\0{file.sha256}\n".encode())
    return digest.hexdigest()
