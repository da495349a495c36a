"""A file is whole or it is not: by its syntax tree and comments, never by substrings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.workspace.validation import elision_of, file_fault, fragment_fault, global_names

WHOLE = [
    "",
    'print("Loading...")\n',
    'text = "TODO: rest of the code"\n',
    "# TODO: make it faster\nx = 1\n",
    "# skip the rest of the file\nx = 1\n",
    "# the three dots ... are printed by main\nx = 1\n",
    "from typing import Protocol\n\n\nclass Port(Protocol):\n    def f(self) -> int: ...\n",
    "import typing as t\n\n\nclass Port(t.Protocol[int]):\n    def f(self) -> int:\n        ...\n",
    "from abc import ABC, abstractmethod\n\n\nclass A(ABC):\n    @abstractmethod\n    def f(self): ...\n",
    "from typing import overload\n\n\n@overload\ndef f(x: int) -> int: ...\ndef f(x):\n    return x\n",
    "class Refused(ValueError): ...\n",
    "x = [...]\ny = x[..., 0] if False else ...\n",
    'def f():\n    """Existing code here is described, not left out."""\n    return 1\n',
    "def f(x=...):\n    return x\n",
]
ELIDED = [
    ("# rest of the code\n", 1),
    ("x = 1\n# ... rest of the code\n", 2),
    ("# the rest of your program\n", 1),
    ("# ...\nx = 1\n", 1),
    ("# … existing code …\n", 1),
    ("# existing code here\n", 1),
    ("# remaining methods unchanged\n", 1),
    ("def f():\n    # add your code here\n    pass\n", 2),
    ("# implementation goes here\n", 1),
    ("def f():\n    ...\n", 2),
    ("def f(): ...\n", 1),
    ("class A:\n    def f(self):\n        ...\n", 3),
    ("class A:\n    ...\n", 2),
    ("x = 1\n...\n", 2),
]
BROKEN = [
    ("def f(:\n", "SyntaxError"),
    ("def f():\nreturn 1\n", "IndentationError"),
    ("if True:\n\tx = 1\n        y = 2\n", "TabError"),
    ("return 1\n", "'return' outside function"),
    ("x = 1\0\n", "null bytes"),
    ("print 'hello'\n", "SyntaxError"),
]


@pytest.mark.parametrize("source", WHOLE)
def test_a_whole_file_passes(source: str) -> None:
    assert file_fault(source) is None


@pytest.mark.parametrize(("source", "line"), ELIDED)
def test_left_out_code_is_found_with_its_line(source: str, line: int) -> None:
    fault = file_fault(source)
    assert fault is not None
    assert "left out" in fault.text
    assert fault.line == line


@pytest.mark.parametrize(("source", "why"), BROKEN)
def test_what_does_not_compile_is_named(source: str, why: str) -> None:
    fault = file_fault(source)
    assert fault is not None
    assert why in fault.text


def test_stubs_may_leave_bodies_out() -> None:
    assert file_fault("def f() -> int: ...\n", "port.pyi") is None


@given(st.text(max_size=200))
def test_any_text_gets_a_verdict(text: str) -> None:
    file_fault(text)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=60))
def test_no_string_is_taken_for_left_out_code(words: str) -> None:
    assert file_fault(f"text = {words!r}\n") is None


@pytest.mark.parametrize(("source", "line"), ELIDED)
def test_left_out_code_is_found_in_a_file_that_does_not_parse_too(source: str, line: int) -> None:
    fault = elision_of(source)
    assert (fault is not None, fault and fault.line) == (True, line)
    if source.startswith(("#", "x = 1\n#")):
        assert elision_of(source + "def f(:\n") == fault


@pytest.mark.parametrize(
    ("path", "source", "line"),
    [
        ("app.js", "let a\n// ... rest of the code\n", 2),
        ("main.c", "int a;\n/* existing code here */\n", 2),
        ("index.html", "<p>\n  <!-- ... -->\n", 2),
        ("run.sh", "# rest of the script\n", 1),
    ],
)
def test_left_out_code_is_found_in_other_languages(path: str, source: str, line: int) -> None:
    fault = elision_of(source, path)
    assert (fault is not None, fault and fault.line) == (True, line)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("README.md", "# Rest of the code\n"),
        ("app.js", "let a = [...b] // the rest\n"),
        ("a.py", "def f(:\n"),
        ("a.pyi", "def f(): ...\n"),
        ("notes.txt", "...\n"),
    ],
)
def test_what_only_looks_like_it_is_not_left_out_code(path: str, source: str) -> None:
    assert elision_of(source, path) is None


BEFORE = "import json\nLIMIT = 3\n\n\nclass Note: pass\n\n\ndef load(text: str) -> Note:\n    return json.loads(text)\n"


@pytest.mark.parametrize(
    ("after", "lost"),
    [
        ("def load(text: str) -> Note:\n    return json.loads(text)[:LIMIT]\n", "LIMIT, Note, json"),
        ("def load(text: str) -> str:\n    return text\n", ""),
        ("from other import *\n\n\ndef load(text: str) -> Note:\n    return Note(text)\n", ""),
        ("import json\n\n\ndef load(Note):\n    LIMIT = 2\n    return json.loads(Note)[LIMIT]\n", ""),
        ("def load(text):\n    global LIMIT\n    LIMIT = 4\n    return LIMIT\n", ""),
        ("print([Note for Note in range(3)], __name__, unknown)\n", ""),
    ],
)
def test_a_piece_of_a_file_is_not_taken_for_the_whole(after: str, lost: str) -> None:
    fault = fragment_fault(after, BEFORE)
    assert (fault.text if fault else "") == (f"it uses {lost}, which is left out" if lost else "")


def test_the_names_that_a_module_defines_and_uses() -> None:
    source = (
        "import os\nx = y\ndef f(a):\n    global g\n    g = a + h\n    local = x\n    return len(local)\n"
    )
    defined, used = global_names(source)
    assert defined == {"os", "x", "f", "g"}
    assert used == {"y", "h", "x", "len"}
    assert global_names("def f(:\n") == (set(), set())
