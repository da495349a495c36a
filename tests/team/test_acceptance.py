"""Examples as data: called in a process of their own, compared outside."""

import subprocess
import sys
from pathlib import Path

import pytest

from septet.domain.plans import (
    ExampleHolds,
    Plan,
    Refusal,
    Requirement,
    open_plan_text,
    parse_plan,
    plan_text,
)
from septet.team.acceptance import call_outcome, example_driver, is_as_wanted, outcome_text

PROGRAM = """
import math
def echo(value): return value
def add(a, b=1): print("noise", end=""); return a + b
def fail(kind): raise {"key": KeyError, "value": ValueError}[kind]("no such\\nthing")
def one(value): return [value, (value,), {"a": {value}}, set(), {}, (), b"x", 1.5]
def third(): return 0.1 + 0.2
class Sum(int):
    def __eq__(self, other): return True
    def __repr__(self): return "5"
def forged(): return Sum()
def leave(): raise SystemExit(0)
class Box:
    @staticmethod
    def size(n): return n
"""


def outcome(folder: Path, call: str) -> str:
    (folder / "app.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-c", example_driver(call)], cwd=folder, capture_output=True, text=True, check=False
    )
    return call_outcome(done.stdout)


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("app.add(2, 3)", "5"),
        ("app.add(2, b=4)", "6.0"),
        ("app.add('a', 'b => c')", "'ab => c'"),
        ("app.echo('a\\nb')", "'a\\nb'"),
        ("app.echo(True)", "True"),
        ("app.echo(None)", "None"),
        ("app.echo([(1, 'x'), {2: {3}}])", "[(1, 'x'), {2: {3}}]"),
        ("app.one(7)", "[7, (7,), {'a': {7}}, set(), {}, (), b'x', 1.5]"),
        ("app.third()", "0.3"),
        ("app.fail('key')", "raises KeyError"),
        ("app.Box.size(3)", "3"),
        ("app.echo('\\ud800')", "'\\ud800'"),
    ],
)
def test_a_right_answer_is_known(tmp_path: Path, call: str, value: str) -> None:
    assert is_as_wanted(outcome(tmp_path, call), value)


@pytest.mark.parametrize(
    ("call", "value", "said"),
    [
        ("app.add(2, 3)", "6", "gives 5"),
        ("app.echo(True)", "1", "gives True"),
        ("app.echo(1)", "True", "gives 1"),
        ("app.echo([1])", "(1,)", "gives [1]"),
        ("app.echo([1, 2])", "[1]", "gives [1, 2]"),
        ("app.echo({1: 2})", "{1: 3}", "gives {1: 2}"),
        ("app.fail('value')", "raises KeyError", "raises ValueError no such thing"),
        ("app.fail('value')", "5", "raises ValueError no such thing"),
        (
            "app.forged()",
            "5",
            "raises TypeError returns a value of the class Sum, which no literal can spell",
        ),
        ("app.leave()", "None", "does not return"),
        ("app.missing()", "5", "raises AttributeError module 'app' has no attribute 'missing'"),
        ("apq.add()", "5", "raises ModuleNotFoundError No module named 'apq'"),
    ],
)
def test_a_wrong_answer_is_known_and_told(tmp_path: Path, call: str, value: str, said: str) -> None:
    found = outcome(tmp_path, call)
    assert not is_as_wanted(found, value)
    assert outcome_text(found) == said


def test_a_plan_with_examples_is_read_and_written_and_what_is_held_back_is_not_in_the_open_text() -> None:
    text = (
        "1. add gives the sum\n   check: example add.add(2, 3) => 5\n   check: held add.add(10, -7) => 3\n"
        "2. it refuses words\n   check: example add.add('a', 1) => raises TypeError\n"
    )
    plan = parse_plan(text)
    assert isinstance(plan, Plan)
    assert [item.check for item in plan.items] == [
        ExampleHolds(call="add.add(2, 3)", value="5"),
        ExampleHolds(call="add.add(10, -7)", value="3", held=True),
        ExampleHolds(call="add.add('a', 1)", value="raises TypeError"),
    ]
    assert parse_plan(plan_text(plan)) == plan
    assert "10, -7" in plan_text(plan)
    assert open_plan_text(plan).splitlines()[2:4] == ["   check P2: held back", "2. it refuses words"]
    assert "-7" not in open_plan_text(plan)


@pytest.mark.parametrize(
    "example",
    ["add(2, 3) => 5", "add.add(x) => 5", "add.add(2) => five", "add.add(2)", "add.add(2, => 5", "5 => 5"],
)
def test_what_is_no_example_is_refused(example: str) -> None:
    refused = parse_plan(f"1. a\n   check: example {example}\n")
    assert isinstance(refused, Refusal)
    assert "example MODULE.FUNCTION(LITERALS) => LITERAL" in refused.reason


def test_a_plan_without_examples_has_one_text() -> None:
    plan = Plan(items=(Requirement(id="P1", text="a"),), run="python a.py")
    assert open_plan_text(plan) == plan_text(plan)
