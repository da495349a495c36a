"""Edits are exact: before, edit, after."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.domain.plans import Refusal
from septet.workspace.edits import (
    diff_text,
    insert_lines,
    remove_lines,
    replace_lines,
    replace_text,
    split_lines,
)

TEXT = "one\ntwo\nthree\n"
TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)


@pytest.mark.parametrize(
    ("text", "line", "code", "after"),
    [
        (TEXT, 1, "zero", "zero\none\ntwo\nthree\n"),
        (TEXT, 2, "x\ny\n", "one\nx\ny\ntwo\nthree\n"),
        (TEXT, 4, "four", "one\ntwo\nthree\nfour\n"),
        ("", 1, "first", "first\n"),
        ("no end", 2, "more", "no end\nmore\n"),
        ("a\r\nb\r\n", 2, "x\ny", "a\r\nx\r\ny\r\nb\r\n"),
        ("a\x0cb\u2028c\nd\n", 2, "x", "a\x0cb\u2028c\nx\nd\n"),
    ],
)
def test_insert(text: str, line: int, code: str, after: str) -> None:
    assert insert_lines(text, line, code) == after


@pytest.mark.parametrize(
    ("text", "start", "end", "code", "after"),
    [
        (TEXT, 2, 2, "TWO", "one\nTWO\nthree\n"),
        (TEXT, 1, 3, "all", "all\n"),
        (TEXT, 3, 3, "a\nb", "one\ntwo\na\nb\n"),
        (TEXT, 1, 2, "", "three\n"),
        ("a\nlast", 2, 2, "b", "a\nb\n"),
    ],
)
def test_replace(text: str, start: int, end: int, code: str, after: str) -> None:
    assert replace_lines(text, start, end, code) == after


@pytest.mark.parametrize(
    ("start", "end", "after"), [(1, 1, "two\nthree\n"), (2, 3, "one\n"), (1, 3, ""), (3, 3, "one\ntwo\n")]
)
def test_remove(start: int, end: int, after: str) -> None:
    assert remove_lines(TEXT, start, end) == after


@pytest.mark.parametrize("edit", [(0, 1), (2, 1), (3, 4), (-1, 2), (4, 4)])
def test_lines_that_are_not_there_are_refused(edit: tuple[int, int]) -> None:
    assert isinstance(remove_lines(TEXT, *edit), Refusal)
    assert isinstance(replace_lines(TEXT, *edit, "x"), Refusal)


@pytest.mark.parametrize("line", [0, -1, 5])
def test_nothing_is_inserted_outside(line: int) -> None:
    assert isinstance(insert_lines(TEXT, line, "x"), Refusal)


def test_an_anchor_must_stand_there_exactly_once() -> None:
    assert replace_text("a b c", "b", "B") == "a B c"
    twice = replace_text("b b", "b", "B")
    assert isinstance(twice, Refusal)
    assert "2 times" in twice.reason
    missing = replace_text("def main():\n    pass\n", "def mian():", "x")
    assert isinstance(missing, Refusal)
    assert "def main():" in missing.reason
    assert isinstance(replace_text("a", "", "x"), Refusal)


@given(TEXTS)
def test_lines_add_up_to_the_text(text: str) -> None:
    assert "".join(split_lines(text)) == text


@given(TEXTS, TEXTS, st.integers(1, 10))
def test_what_is_inserted_can_be_removed_again(text: str, code: str, line: int) -> None:
    text = text.replace("\r", "") + "\n"
    code = code.replace("\r", "") + "\n"
    inserted = insert_lines(text, line, code)
    if not isinstance(inserted, Refusal):
        assert remove_lines(inserted, line, line + len(split_lines(code)) - 1) == text


def test_a_diff_shows_what_changed() -> None:
    assert diff_text("a.py", "x\ny\n", "x\nz\n") == "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n"
    assert diff_text("a.py", None, "x\n").startswith("--- /dev/null\n+++ b/a.py\n")
    assert diff_text("a.py", "x\n", None).startswith("--- a/a.py\n+++ /dev/null\n")
