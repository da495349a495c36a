"""What counts as a question, and which references an answer makes."""

import pytest

from septet.domain.approvals import is_question
from septet.domain.citations import Reference, check_references

TEXTS = {
    "src/a/x.py": "one\n  two\nthree\n",
    "src/b/x.py": "only\n",
    "Makefile": "all:\n",
    "read me.md": "#\n",
}


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Where is the retry policy decided?", True),
        ("why does it fail on Windows? And which tests show it?", True),
        ("Is the cache thread safe?", True),
        ("Can the parser read tabs?", True),
        ("Can you make it faster?", False),
        ("Could we have a dark mode?", False),
        ("What about a dark mode?", False),
        ("Why is it slow? Make it faster.", False),
        ("A quiz: what is the capital of France?", False),
        ("Make a page that asks: how are you?", False),
        ("", False),
    ],
)
def test_a_question_wants_an_answer_and_no_work(text: str, asks: bool) -> None:
    assert is_question(text) is asks


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("`src/a/x.py:2`", 2),
        ("(src/a/x.py:1-3)", 1),
        ("src/a/x.py:1–2, then", 1),
        ("./src/a/x.py:3.", 3),
        ("/home/me/p/src/a/x.py:3", 3),
        ("a/x.py:3", 3),
        ("x.py:3", 3),
    ],
)
def test_a_line_that_is_there_is_found(said: str, line: int) -> None:
    (found,) = check_references(said, TEXTS, "/home/me/p").found
    assert (found.path, found.line) == ("src/a/x.py", line)


def test_what_stands_there_is_told() -> None:
    assert check_references("Makefile:1 does", TEXTS).found == (
        Reference(path="Makefile", line=1, text="all:"),
    )


@pytest.mark.parametrize(
    "said", ["src/a/x.py:4", "src/a/x.py:0", "x.py:9", "x.py:3-9", "y.py:1", "lib/y.rs:1"]
)
def test_a_line_that_is_not_there_is_named(said: str) -> None:
    seen = check_references(said, TEXTS)
    assert not seen.found
    assert [one.startswith(f"{said} (") for one in seen.unverified] == [True]


@pytest.mark.parametrize(
    "said",
    [
        "at 12:30",
        "localhost:8000",
        "http://h.example/x.py:3",
        "example.com:443",
        "Note:3",
        "a:b:3",
        "x.py::t",
        "v1.2:3",
    ],
)
def test_other_colons_are_no_references(said: str) -> None:
    seen = check_references(said, TEXTS)
    assert (seen.found, seen.unverified) == ((), ())
