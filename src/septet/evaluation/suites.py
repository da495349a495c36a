"""Suites of tasks with hidden tests, as data: what is asked, what the folder holds, and what the result must pass.

Forms that are read: our own JSONL (`id`, `goal`, `files`, `tests`, `entry`), HumanEval's (`prompt`, `test`,
`entry_point`), EvalPlus's (`canonical_solution` with `base_input` and `plus_input`), MBPP's (`test_list`), and folders
(`folders.py`).
"""

import gzip
import json
import random
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import msgspec

from septet.errors import BadUsage
from septet.evaluation.folders import read_folders
from septet.evaluation.tasks import MODULE, EvalTask

BUNDLED = {"small": "small.jsonl"}


class Row(msgspec.Struct):
    """A line of any of the forms."""

    id: str = ""
    task_id: str | int = ""
    goal: str = ""
    prompt: str = ""
    text: str = ""
    files: dict[str, str] = {}
    tests: dict[str, str] = {}
    entry: str = ""
    entry_point: str = ""
    solution: str = ""
    canonical_solution: str = ""
    test: str = ""
    test_list: list[str] = []
    test_setup_code: str = ""
    base_input: list[object] = []
    plus_input: list[object] | dict[str, object] = []
    atol: float = 0.0
    assertion: str = ""


def read_suite(name: str) -> list[EvalTask]:
    """A bundled suite by its name, or a file or folder of the person's."""
    path = Path(name)
    if name in BUNDLED and not path.exists():
        return read_lines(files("septet.evaluation").joinpath(BUNDLED[name]).read_text(), name)
    if path.is_dir():
        return read_folders(path)
    if not path.is_file():
        raise BadUsage(
            f"'{name}' is no suite", f"name a .jsonl file, a folder of tasks, or one of {', '.join(BUNDLED)}"
        )
    data = path.read_bytes()
    text = (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode()
    return read_lines(text, name)


def read_lines(text: str, name: str) -> list[EvalTask]:
    tasks: list[EvalTask] = []
    for number, line in enumerate(filter(str.strip, text.splitlines()), start=1):
        try:
            tasks.append(task_of(msgspec.convert(json.loads(line), Row)))  # EvalPlus writes Infinity
        except (msgspec.MsgspecError, ValueError) as error:
            raise BadUsage(f"{name}, line {number}: {error}", "docs/evaluation.md shows the forms") from error
    if len({one.id for one in tasks}) != len(tasks):
        raise BadUsage(f"{name}: two tasks have the same id", "give each its own")
    return tasks


def task_of(row: Row) -> EvalTask:
    """Raises ValueError for a row that has no goal or no tests."""
    goal = row.goal or row.prompt.strip().strip('"').strip() or row.text
    entry = row.entry or row.entry_point
    tests = row.tests or hidden_tests(row, entry)
    identity = row.id or str(row.task_id)
    if not identity or not goal or not tests:
        raise ValueError("a task needs an id, a goal and tests")
    solution = row.solution or (row.prompt if row.test else "") + row.canonical_solution
    return EvalTask(id=identity, goal=goal, tests=tests, files=row.files, entry=entry, solution=solution)


def hidden_tests(row: Row, entry: str) -> dict[str, str]:
    """The tests of a foreign form as a test file of ours."""
    if row.base_input:
        return {"test_hidden.py": compared_with_solution(row, entry)}
    head = f"from {MODULE} import *\n"
    if row.test:
        check = f"def test_hidden():\n    check({entry})\n"
        return {"test_hidden.py": f"{head}from {MODULE} import {entry}\n{row.test}\n\n{check}"}
    if row.test_list:
        asserts = "\n".join(f"    {line}" for one in row.test_list for line in one.splitlines())
        return {"test_hidden.py": f"{head}{row.test_setup_code}\n\ndef test_hidden():\n{asserts}\n"}
    return {}


COMPARISON = """\
import copy, json
import {module}

CANONICAL = {solution!r}
INPUTS = json.loads({inputs!r})

def same(one, other):
    if isinstance(one, float) or isinstance(other, float):
        try:
            return one == other or abs(one - other) <= max({atol!r}, 1e-6 * abs(other))
        except TypeError:
            return False
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other

def test_hidden():
    space = {{}}
    exec(CANONICAL, space)
    compared = 0
    for arguments in INPUTS:
        try:
            wanted = space[{entry!r}](*copy.deepcopy(arguments))
        except Exception:  # JSON has no tuples and sets: the right program cannot take this input
            continue
        compared += 1
        assert same(getattr({module}, {entry!r})(*copy.deepcopy(arguments)), wanted)
    assert compared or {assertion!r}

def test_assertion():
    exec({assertion!r}, dict(vars({module})))
"""


def compared_with_solution(row: Row, entry: str) -> str:
    """The result and the right program must agree on every input that the right one can take."""
    inputs = json.dumps([*row.base_input, *row.plus_input])
    solution = (row.prompt if "def " in row.prompt else "") + row.canonical_solution
    return COMPARISON.format(
        module=MODULE, solution=solution, inputs=inputs, atol=row.atol, entry=entry, assertion=row.assertion
    )


def sample(tasks: Sequence[EvalTask], count: int | None, seed: int) -> list[EvalTask]:
    """So many of them, the same ones for the same seed, in their order."""
    if count is None or count >= len(tasks):
        return [*tasks]
    places = sorted(random.Random(seed).sample(range(len(tasks)), count))  # noqa: S311  # no secret
    return [tasks[place] for place in places]
