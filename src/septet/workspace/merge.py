"""Three versions of a file become one: git's own merge, and marks where the two sides disagree."""

import shutil
import subprocess

from septet.common.temporary import temporary_folder
from septet.common.values import Value

MARKS = (b"<<<<<<< the folder", b">>>>>>> the team")
PATIENCE = 20.0


class Merge(Value):
    """What came of it; nothing where the contents cannot be merged by lines, or there is no git."""

    content: bytes | None
    clean: bool


def merge_file(base: bytes, folder: bytes, team: bytes) -> Merge:
    """The team's change and the folder's, both made to `base`."""
    if folder in (base, team):
        return Merge(content=team, clean=True)
    if team == base:
        return Merge(content=folder, clean=True)
    program = shutil.which("git")
    if program is None or any(b"\0" in content for content in (base, folder, team)):
        return Merge(content=None, clean=False)
    with temporary_folder("merge") as made:
        for name, content in (("folder", folder), ("base", base), ("team", team)):
            (made / name).write_bytes(content)
        labels = ("-L", "the folder", "-L", "before", "-L", "the team")
        run = subprocess.run(
            [program, "merge-file", "-p", *labels, "folder", "base", "team"],
            cwd=made,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    if not 0 <= run.returncode < 128:
        return Merge(content=None, clean=False)
    return Merge(content=run.stdout, clean=run.returncode == 0)


def has_marks(content: bytes) -> bool:
    """Whether somebody still has to decide."""
    return all(mark in content for mark in MARKS)
