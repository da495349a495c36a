"""What can be learnt from: each kind of file gives its examples, junk gives none."""

import json
from html import escape
from pathlib import Path

import pytest
from msgspec.structs import replace
from team.states import STARTED, planned, ran, reviewed, version

from septet.chat.example_sources import examples_in, failures, from_chat
from septet.domain.events import (
    ChatEnded,
    ChatStarted,
    Recorded,
    RunFinished,
    VersionWritten,
    WorkAccepted,
)
from septet.domain.files import FileRef, tree_of
from septet.domain.runs import Purpose, RunResult
from septet.errors import BadUsage
from septet.stores.memory import MemoryBlobs
from septet.ways.table import TEAMS

pytestmark = pytest.mark.anyio

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


async def test_a_finished_chat_is_learnt_from_with_the_errors_that_it_overcame() -> None:
    blobs = MemoryBlobs()
    code = FileRef(path="add.py", sha256=await blobs.put(b"x = 1\n"), size=6)
    written = VersionWritten(number=1, files=(code,), tree=tree_of((code,)))
    error = "ValueError: " + "x" * 288

    def failed(number: int, purpose: Purpose = "run") -> RunFinished:
        ended = RunResult(exit_code=1, stderr=error.replace("x", "abc"[number], 1))
        return RunFinished(id=f"{number}", purpose=purpose, command="c", tree="", result=ended)

    fine = RunFinished(id="9", purpose="run", command="c", tree="", result=RunResult(exit_code=0))
    runs = [failed(0), failed(0), failed(1), failed(2, "hollow check"), fine]
    started = ChatStarted(goal="g" * 201, team=TEAMS["iterate"], workspace="/w")
    accepted = [WorkAccepted(), ChatEnded(reason="accepted")]
    log = [
        Recorded(chat="c", seq=seq, at=0.0, event=event)
        for seq, event in enumerate([started, *runs, written, *accepted], start=1)
    ]
    errors = failures(log)
    assert errors == [error.replace("x", letter, 1) for letter in "ab"]
    assert await from_chat(log, blobs) == [], "only what ended done is learnt from"


async def test_each_file_of_a_chat_that_ended_done_is_an_example() -> None:
    class AnyBlobs(MemoryBlobs):
        async def get(self, address: str) -> bytes:
            return address.encode()

    first = [*planned(), *version(1, "a"), *ran(1, "a", green=False), *reviewed(1, accept=False)]
    second = [*version(2, "b"), *ran(2, "b", green=True), *reviewed(2, accept=True), ChatEnded(reason="done")]
    events = [replace(STARTED, goal="g" * 201), *first[1:], *second]
    log = [Recorded(chat="c", seq=seq, at=0.0, event=event) for seq, event in enumerate(events, start=1)]
    found = await from_chat(log, AnyBlobs())
    assert [(one.code, one.source) for one in found] == [
        ("b", "chat c, v2, add.py"),
        ("t", "chat c, v2, test_add.py"),
    ]
    assert {(one.title, one.text) for one in found} == {("g" * 200, "; ".join(failures(log)))}
    assert failures(log)
