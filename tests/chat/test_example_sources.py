"""What can be learnt from: each kind of file gives its examples, junk gives none."""

import json
from html import escape
from pathlib import Path

import pytest

from septet.chat.example_sources import examples_in
from septet.errors import BadUsage

CELLS = [{"cell_type": "markdown", "source": ["# Plot a line"]}, {"cell_type": "code", "source": ["plot(x)"]}]
ANSWER = {"title": "Reverse a list", "text": "how?", "code": "a[::-1]", "source": "qa/1"}
BODY = escape("<p>Sort by key</p><pre><code>sorted(a, key=f)</code></pre>")
FILES = {
    "code.py": 'def add(a, b):\n    """The sum of two numbers."""\n    return a + b\n\n\ndef silent():\n    return 1\n',
    "notes.md": "# Read a CSV\nUse the csv module:\n\n```python\nimport csv\n```\n\n# Nothing here\n",
    "book.ipynb": json.dumps({"cells": CELLS}),
    "dump.jsonl": json.dumps(ANSWER) + '\nnot json\n{"title": "x"}\n',
    "posts.xml": f'<row Id="1" Body="{BODY}" />',
    "broken.py": "def (",
    "broken.ipynb": "{",
    "picture.png": "x",
}


def test_every_kind_of_file_gives_its_examples(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    found = {(one.title, one.code.strip()) for one in examples_in(tmp_path)}
    assert found == {
        ("add", 'def add(a, b):\n    """The sum of two numbers."""\n    return a + b'),
        ("Read a CSV", "import csv"),
        ("Plot a line", "plot(x)"),
        ("Reverse a list", "a[::-1]"),
        ("Sort by key", "sorted(a, key=f)"),
    }


def test_a_post_keeps_its_title_wherever_it_stands(tmp_path: Path) -> None:
    (tmp_path / "posts.xml").write_text(f'<row Id="1" Body="{BODY}" OwnerUserId="7" Title="How to sort" />')
    assert [one.title for one in examples_in(tmp_path)] == ["How to sort"]


def test_a_method_is_shown_without_the_indentation_of_its_class(tmp_path: Path) -> None:
    text = 'class A:\n    def b(self):\n        """Say it."""\n        return 1\n'
    (tmp_path / "code.py").write_text(text)
    assert [one.code for one in examples_in(tmp_path)] == ['def b(self):\n    """Say it."""\n    return 1']


def test_a_source_tells_where_to_look(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(FILES["code.py"])
    assert [one.source for one in examples_in(tmp_path / "code.py")] == [f"{tmp_path / 'code.py'}:1"]


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="does not exist"):
        examples_in(tmp_path / "absent")
