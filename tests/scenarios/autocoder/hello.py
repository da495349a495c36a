"""The six states of a small project, the script that brings each to green, and running them for real."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

MAIN = """def greet(name):
    return f"hello, {name}"


if __name__ == "__main__":
    print(greet("world"))
"""
TEST = """from main import greet


def test_greet():
    assert greet("you") == "hello, you"
"""
PLAN = """1. greet(name) gives "hello, NAME"
   check: tests test_main.py::test_greet
2. The program greets the world
   check: command python main.py => hello, world
run: python main.py
"""
Arguments = Mapping[str, object]


class Step(NamedTuple):
    """A call of the coder, and what it must have been told."""

    name: str
    arguments: Arguments
    expect: str


class Case(NamedTuple):
    files: Mapping[str, str]
    steps: tuple[Step, ...]
    case: str
    decision: str


CASES: dict[str, Case] = {
    "empty": Case(
        {},
        (Step("create", {"code": MAIN, "test_code": TEST}, "there is no file yet"),),
        "empty",
        "the program is to be written",
    ),
    "finished": Case({"main.py": MAIN, "test_main.py": TEST}, (), "green", "nothing is to be changed"),
    "wrong code": Case(
        {"main.py": MAIN.replace("hello, {", "hullo, {"), "test_main.py": TEST},
        (
            Step(
                "replace_code",
                {
                    "path": "main.py",
                    "start_line": 2,
                    "end_line": 2,
                    "code": '    return f"hello, {name}"',
                    "decision": {"wrong": "code", "item": "P1", "why": "the plan says hello, not hullo"},
                },
                "code and test disagree",
            ),
        ),
        "disagreement",
        "the code is wrong, by P1",
    ),
    "broken syntax": Case(
        {"main.py": MAIN.replace("def greet(name):", "def greet(name:"), "test_main.py": TEST},
        (Step("edit_text", {"path": "main.py", "old": "greet(name:", "new": "greet(name):"}, "SyntaxError"),),
        "broken",
        "main.py is wrong",
    ),
    "wrong test": Case(
        {"main.py": MAIN, "test_main.py": TEST.replace('"hello, you"', '"goodbye, you"')},
        (
            Step(
                "write_code",
                {
                    "path": "test_main.py",
                    "code": TEST,
                    "decision": {"wrong": "test", "item": "P1", "why": "nobody asked for goodbye"},
                },
                "test_main.py::test_greet",
            ),
        ),
        "disagreement",
        "the test is wrong, by P1",
    ),
    "wrong indentation": Case(
        {
            "main.py": MAIN.replace("    return", "  return"),
            "test_main.py": TEST.replace("    assert", "assert"),
        },
        (
            Step(
                "replace_code",
                {
                    "path": "test_main.py",
                    "start_line": 5,
                    "end_line": 5,
                    "code": '    assert greet("you") == "hello, you"',
                },
                "IndentationError",
            ),
        ),
        "broken",
        "test_main.py is wrong",
    ),
}


def write_script(path: Path, steps: tuple[Step, ...], verdicts: int = 1) -> str:
    """A script as a file; the name of the model that reads it."""
    turns: list[Arguments] = [{"role": "planner", "say": PLAN}]
    for step in steps:
        arguments = {"reasoning": f"{step.name} is needed", **step.arguments}
        turns.append(
            {"role": "coder", "expect": step.expect, "calls": [{"name": step.name, "arguments": arguments}]}
        )
    turns += [{"role": "reviewer", "say": "verdict: accept"}] * verdicts
    path.write_bytes(msgspec.yaml.encode({"turns": turns}))
    return f"scripted:{path}"


def fill(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder
