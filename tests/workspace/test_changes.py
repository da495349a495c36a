"""What a call wants to change: checked as a whole, formatted where it is the team's own, told as a diff."""

import pytest
from tools.projects import project

from septet.domain.files import FileChange, FileRef
from septet.domain.plans import Refusal
from septet.stores.memory import MemoryBlobs
from septet.workspace.changes import (
    LARGEST,
    Change,
    faithful,
    file_changes,
    files_after,
    prepare_change,
    split_imports,
    text_trouble,
    wishes,
)

pytestmark = pytest.mark.anyio
UGLY, NEAT = "x=1\n", "x = 1\n"
STUB = "def f():\n    # ... rest of the code unchanged\n    pass\n"


async def test_new_files_and_the_teams_own_are_formatted_and_others_stay_as_they_are() -> None:
    before = {"mine.py": "y=1\n", "ours.py": "z=1\n"}
    wished = {"new.py": UGLY, "mine.py": UGLY, "ours.py": UGLY, "a.txt": UGLY, "gone.py": None}
    change = await prepare_change({**before, "gone.py": "g\n"}, wished, ["ours.py"])
    assert isinstance(change, Change)
    assert change.texts == {"new.py": NEAT, "mine.py": UGLY, "ours.py": NEAT, "a.txt": UGLY, "gone.py": None}
    assert change.diff.startswith("--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x = 1\n--- a/mine.py\n")
    assert change.diff.endswith("--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n")
    byte_by_byte = await prepare_change({}, {"new.py": UGLY}, None)
    assert isinstance(byte_by_byte, Change)
    assert byte_by_byte.texts == {"new.py": UGLY}
    same = await prepare_change({"ours.py": NEAT}, {"ours.py": UGLY}, ["ours.py"])
    assert same == Change(texts={}, diff="")


@pytest.mark.parametrize(
    ("wished", "reason"),
    [
        ({"a.py": "x = 1\n", "../b.py": "x"}, "'../b.py' is not a path inside the workspace"),
        ({"a.py": "x = 1\n", "A.py": "x = 1\n"}, "'a.py' differs only in case from 'A.py'"),
        ({"KNOWN.py": "x = 1\n"}, "'KNOWN.py' differs only in case from 'known.py'"),
        ({"a.py": "def f(:\n"}, "nothing was written, for "),
    ],
)
async def test_one_bad_file_refuses_all(wished: dict[str, str], reason: str) -> None:
    refused = await prepare_change({"known.py": "x = 1\n"}, wished)
    assert isinstance(refused, Refusal)
    assert refused.reason.startswith(reason)


def test_a_text_may_have_so_many_bytes_and_no_more() -> None:
    assert text_trouble("a.txt", "x" * LARGEST, "") is None
    assert text_trouble("a.txt", None, "") is None
    long = text_trouble("a.txt", "ä" * (LARGEST // 2) + "x", "")
    assert long == Refusal(reason="'a.txt' would have 1,048,577 bytes, 1,048,576 are the most")
    odd = text_trouble("a.txt", "\ud800", "")
    assert odd == Refusal(reason="'a.txt' would hold a character that UTF-8 does not have")


def test_code_that_was_left_out_before_may_stay_left_out_and_none_may_be_new() -> None:
    assert text_trouble("a.py", STUB, "x = 1\n") is not None
    assert text_trouble("a.py", STUB, STUB) is None
    assert text_trouble("a.txt", STUB, "") is None
    assert text_trouble("a.py", STUB + "def f(:\n", STUB) is not None


def test_the_differences_of_two_projects() -> None:
    before, after = project(a_py="a", b_py="b", c_py="c"), project(a_py="a", b_py="B", d_py="d")
    assert wishes(before, after) == {"b.py": "B", "c.py": None, "d.py": "d"}


async def test_contents_are_kept_and_the_kinds_are_told() -> None:
    blobs = MemoryBlobs()
    new, changed, deleted = await file_changes({"n": "ä", "c": "x", "d": None}, {"c", "d"}, blobs)
    assert [(one.path, one.kind, one.size) for one in (new, changed, deleted)] == [
        ("n", "new", 2),
        ("c", "changed", 1),
        ("d", "deleted", 0),
    ]
    assert await blobs.get(new.sha256) == "ä".encode()
    assert deleted.sha256 == ""


def test_changes_are_applied_in_order() -> None:
    old = FileRef(path="old", sha256="0", size=1)
    changes = (
        FileChange(path="z", kind="new", sha256="1", size=2),
        FileChange(path="old", kind="deleted"),
        FileChange(path="never", kind="deleted"),
        FileChange(path="a", kind="new", sha256="3", size=4),
        FileChange(path="z", kind="changed", sha256="5", size=6),
    )
    assert files_after({"old": old}, changes) == (
        FileRef(path="a", sha256="3", size=4),
        FileRef(path="z", sha256="5", size=6),
    )


def test_a_formatted_text_is_taken_only_if_it_means_the_same() -> None:
    assert faithful("x=1\n", "x = 1\n") == "x = 1\n"
    assert faithful("x=1\n", "x = 2\n") == "x=1\n"
    assert faithful("x=1\n", "x = (\n") == "x=1\n"
    joined, split = "import os, mymodule\n", "import os\n\nimport mymodule\n"
    assert faithful(joined, split) == split, "imports may be sorted and split"
    assert faithful(joined, "import os\n") == joined
    names, others = split_imports("from . import a as b\nfrom x import c, a\nx = 1\nimport x\n")
    assert names == ["0x.a as None", "0x.c as None", "1None.a as b", "x as None"]
    assert len(others) == 1
