"""Formatting changes the looks and nothing else."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from septet.workspace.changes import faithful, format_source

UGLY = '''"""What it is for."""
from __future__ import annotations
import sys
import os   # needed later
# a comment that stays
def f( x,y ):
    """Docstring."""
    # inside
    return {  'a':x , "b" : y }
'''
PRETTY = '''"""What it is for."""

from __future__ import annotations

import os  # needed later
import sys


# a comment that stays
def f(x, y):
    """Docstring."""
    # inside
    return {"a": x, "b": y}
'''


def test_comments_docstrings_and_future_imports_survive() -> None:
    assert format_source(UGLY, "a.py") == PRETTY


@pytest.mark.parametrize("source", ["def f(:\n", "", "x = 1\0", "just words here", "x = 1  \n"])
def test_what_is_no_python_stays_as_it_is(source: str) -> None:
    assert format_source(source, "a.py") in (source, "x = 1\n")
    assert format_source(source, "a.txt") == source


def test_another_meaning_is_not_taken() -> None:
    assert faithful("x = 1\n", "x = 2\n") == "x = 1\n"
    assert faithful("import a\nx = 1\n", "x = 1\n") == "import a\nx = 1\n"
    assert (
        faithful("import b, a\nx = 1\n", "import a\nimport b\n\nx = 1\n") == "import a\nimport b\n\nx = 1\n"
    )


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from([*UGLY.splitlines()[1:4], "x = [1,2]", "y = (3)", "if x: y=1"]), max_size=6))
def test_the_syntax_tree_is_the_same(lines: list[str]) -> None:
    source = "\n".join(sorted(lines, key=lambda line: "__future__" not in line)) + "\n"
    after = format_source(source, "a.py")
    rest = [
        ast.dump(node) for node in ast.parse(after).body if not isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert rest == [
        ast.dump(node) for node in ast.parse(source).body if not isinstance(node, ast.Import | ast.ImportFrom)
    ]
