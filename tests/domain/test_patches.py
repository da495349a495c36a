"""Changes as models write them are applied exactly, or refused with what is wrong."""

from difflib import unified_diff

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.domain.patches import (
    UNSEEN,
    Hunk,
    apply_hunks,
    apply_patch,
    is_patch,
    patched_path,
    replace_definition,
    split_diff,
)
from septet.domain.plans import Refusal

LINES = st.lists(st.sampled_from("abcd"), min_size=1, max_size=12)


@given(LINES, LINES, st.integers(0, 3))
def test_a_diff_gives_the_other_text_however_much_is_shown_around_its_lines(
    old: list[str], new: list[str], shown: int
) -> None:
    """Lines are the same all over: the numbers of the diff say which are meant."""
    diff = "\n".join(unified_diff(old, new, "a/x", "b/x", n=shown, lineterm=""))
    if not diff:
        return
    after = apply_patch("x", "\n".join(old), diff)
    assert after == "\n".join(new) or (isinstance(after, Refusal) and "nothing says where" in after.reason)


TEXT = "a\nb\nc\nb\nd"
TEXT_LINES: list[str] = [*"abcbd"]


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (Hunk(old=("c",), new=("x", "y")), "a\nb\nx\ny\nb\nd"),
        (Hunk(old=("c  ",), new=("x",)), "a\nb\nx\nb\nd"),
        (Hunk(old=("c",), new=(), line=99), "a\nb\nb\nd"),
        (Hunk(old=("b",), new=("x",), line=4), "a\nb\nc\nx\nd"),
        (Hunk(old=("b",), new=("x",), line=2), "a\nx\nc\nb\nd"),
        (Hunk(old=("b",), new=("x",), line=3), "there 2 times, quote more around them:\nb"),
        (Hunk(old=("b",), new=("x",)), "there 2 times, quote more around them:\nb"),
        (Hunk(old=("c", "b", "d", "e"), new=()), "not there:\nc\nb\nd"),
        (Hunk(old=("d",), new=("e",)), "a\nb\nc\nb\ne"),
        (Hunk(old=(), new=("x",), line=5), "a\nb\nc\nb\nd\nx"),
        (Hunk(old=(), new=("x",), line=1), "a\nx\nb\nc\nb\nd"),
        (Hunk(old=(), new=("x",), line=6), "nothing says where the new lines go"),
        (Hunk(old=(), new=("x",)), "nothing says where the new lines go"),
    ],
)
def test_lines_are_replaced_where_they_stand_once_or_where_the_diff_says(change: Hunk, after: str) -> None:
    found = apply_hunks(TEXT_LINES, [change])
    assert (found.reason.removeprefix("these lines are ") if isinstance(found, Refusal) else found) == after


def test_a_later_place_moves_by_what_was_added_before_it() -> None:
    grown = [Hunk(old=("a",), new=("a", "a2", "a3"), line=1), Hunk(old=("b",), new=("x",), line=4)]
    assert apply_hunks(TEXT_LINES, grown) == "a\na2\na3\nb\nc\nx\nd"
    less = [Hunk(old=("a",), new=(), line=1), Hunk(old=("b",), new=("x",), line=4)]
    assert apply_hunks(TEXT_LINES, less) == "b\nc\nx\nd"
    assert apply_hunks([""], [Hunk(old=(), new=("x",))]) == "x\n"


BLOCK = "<<<<<<< SEARCH\nb\nc\n=======\nx\n>>>>>>> REPLACE"
DIFF = "--- a/f.py\n+++ b/f.py\n@@ -3 +3 @@\n-c\n+x\n\\ No newline at end of file"


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        (BLOCK, "a\nx\nb\nd"),
        (f"{BLOCK}\n\n<<<<<<< SEARCH\nd\n=======\n>>>>>>> REPLACE\n", "a\nx\nb"),
        (f"{BLOCK}\nand so on", "'f.py': 'and so on' stands outside of the SEARCH/REPLACE blocks"),
        (
            "<<<<<<< SEARCH\nb\n=======\nx",
            "'f.py': a SEARCH block has no line '=======' or no line '>>>>>>> REPLACE'",
        ),
        (
            "<<<<<<< SEARCH\nb\n>>>>>>> REPLACE",
            "'f.py': a SEARCH block has no line '=======' or no line '>>>>>>> REPLACE'",
        ),
        (DIFF, "a\nb\nx\nb\nd"),
        (DIFF.replace("-3 +3", ""), "a\nb\nx\nb\nd"),
        (f"{DIFF}\n@@ -5 +5 @@\n-d\n+e", "a\nb\nx\nb\ne"),
        (f"{DIFF}\n{DIFF}", "'f.py': the diff changes several files; send one file a block"),
        (DIFF.replace("b/f.py", "/dev/null"), "'f.py': files cannot be deleted by a diff"),
        ("--- a/f.py\n+++ b/f.py\n-c\n+x", "'f.py': the diff has no line that begins with @@"),
        (f"see here\n{DIFF}", "'f.py': 'see here' stands before the first hunk of the diff"),
        ("@@ -3 +3 @@\n-c\n*x", "'f.py': the line '*x' of the diff begins with none of ' ', '+' and '-'"),
    ],
)
def test_blocks_and_diffs_are_applied_or_said_to_be_wrong(patch: str, after: str) -> None:
    found = apply_patch("f.py", TEXT, patch)
    if isinstance(found, Refusal):
        assert found.reason == f"{after}\nMend the change, or send the file whole."
    else:
        assert found == after


def test_a_file_that_nobody_has_can_only_be_made_anew() -> None:
    made = "--- /dev/null\n+++ b/f.py\n@@ -0,0 +1,2 @@\n+x\n+y"
    assert apply_patch("f.py", None, made) == "x\ny\n"
    assert apply_patch("f.py", None, DIFF) == Refusal(reason=UNSEEN.format("f.py"))


@pytest.mark.parametrize(
    ("text", "patch"),
    [
        (BLOCK, True),
        (DIFF, True),
        ("@@ -1 +1 @@", True),
        ("@@", True),
        ("diff --git a/x b/x", True),
        ("\n--- a/x\n\n+++ b/x\n", True),
        ("--- a/x\nx = 1", False),
        ("x = 1\n+++ b/x", False),
        ("x = 1", False),
        ("", False),
    ],
)
def test_a_change_is_told_from_a_whole_file(text: str, patch: bool) -> None:
    assert is_patch(text) is patch


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (DIFF, "f.py"),
        ("--- a/f.py\t2026\n+++ /dev/null", "f.py"),
        ("--- /dev/null\n+++ /dev/null", ""),
        ("+++ b/f.py", ""),
        ("x", ""),
    ],
)
def test_the_header_of_a_diff_names_the_file(text: str, path: str) -> None:
    assert patched_path(text) == path


def test_a_diff_of_several_files_is_split_at_each_header() -> None:
    other = DIFF.replace("f.py", "g.py")
    assert split_diff(DIFF) == [("", DIFF)]
    assert split_diff(f"{DIFF}\n{other}") == [("f.py", DIFF), ("g.py", other)]
    git = f"diff --git a/f.py b/f.py\nindex 1..2\n{DIFF}"
    assert split_diff(f"{git}\ndiff --git a/g.py b/g.py\n{other}") == [
        ("f.py", git),
        ("g.py", f"diff --git a/g.py b/g.py\n{other}"),
    ]
    minus = "--- a/f.py\n+++ b/f.py\n@@ -1,2 +1 @@\n--- x\n y"
    assert split_diff(minus) == [("", minus)], "a line that was removed is no header"


SOURCE = """\
import re


@cached
def one():
    return 1


class Two:
    def three(self):
        return 3


if __name__ == "__main__":
    one()
"""


@pytest.mark.parametrize(
    ("name", "code", "old", "new"),
    [
        (
            "one",
            "def one():\n    return 11\n",
            "@cached\ndef one():\n    return 1\n",
            "def one():\n    return 11\n",
        ),
        ("Two.three", "def three(self):\n    return 33", "        return 3\n", "        return 33\n"),
        (
            "Two.four",
            "    def four(self):\n\n        return 4",
            "        return 3\n",
            "        return 3\n\n    def four(self):\n\n        return 4\n",
        ),
        (
            "five",
            "def five(): ...",
            "        return 3\n\n\n",
            "        return 3\n\n\ndef five(): ...\n\n\n",
        ),
    ],
)
def test_a_definition_takes_the_place_of_the_old_one_or_is_added_where_it_belongs(
    name: str, code: str, old: str, new: str
) -> None:
    assert replace_definition("a.py", SOURCE, name, code) == SOURCE.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "name", "code", "reason"),
    [
        (None, "one", "def one(): ...", UNSEEN.format("a.py")),
        (
            SOURCE,
            "one",
            "def two(): ...",
            "'a.py::one': the block must hold 'one' whole and no other definition",
        ),
        (SOURCE, "one", "def one(:", "'a.py::one': the block must hold 'one' whole and no other definition"),
        (
            SOURCE,
            "one",
            "x = 1\ndef one(): ...",
            "'a.py::one': only the definition can be replaced; send the rest as an edit",
        ),
        (SOURCE, "No.one", "def one(): ...", "'a.py' has no 'No'; its definitions are one, Two, Two.three"),
        ("def (", "one", "def one(): ...", "'a.py' has no 'one'; its definitions are none that can be read"),
        ("class A: x = 1\n", "A.b", "def b(self): ...", "'a.py' has no 'A'; its definitions are A"),
    ],
)
def test_what_is_no_whole_definition_of_a_file_is_refused(
    text: str | None, name: str, code: str, reason: str
) -> None:
    assert replace_definition("a.py", text, name, code) == Refusal(reason=reason)


def test_a_function_is_added_to_the_end_of_a_file_that_nothing_starts() -> None:
    assert replace_definition("a.py", "x = 1\n", "f", "def f(): ...") == "x = 1\n\n\ndef f(): ...\n"
