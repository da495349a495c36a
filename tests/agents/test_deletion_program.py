"""What a program gives is spelled without asking the program, and an outcome says how a call ended."""

from collections.abc import Callable

import pytest

from septet.agents import deletion_program
from septet.agents.deletion_program import DEEPEST, LONGEST, make, outcome, spelled, with_attributes


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is stopped by its time, however busy the machine is."""
    for name in ("STEP_SECONDS", "WAIT_SECONDS"):
        monkeypatch.setattr(deletion_program, name, 600.0)


class Named:
    def __init__(self, **fields: object) -> None:
        vars(self).update(fields)

    def __repr__(self) -> str:
        raise AssertionError("nobody asks a value of the program how it looks")


class Count(int):
    pass


class Share(float):
    pass


class Word(str):
    __slots__ = ()


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (1.5, "1.5"),
        (b"x", "b'x'"),
        ({"b": 1, "a": [2]}, "{'a': [2], 'b': 1}"),
        ({3, 1}, "{1, 3}"),
        (frozenset({3, 1}), "{1, 3}"),
        ((), "()"),
        ((1,), "(1,)"),
        ((1, 2), "(1, 2)"),
        ([], "[]"),
        (range(2), "[0, 1]"),
        (map(str, [1]), "['1']"),
        ((one for one in "ab"), "['a', 'b']"),
        (zip("a", "b", strict=True), "[('a', 'b')]"),
        (Named(b=1, a="x"), "<Named a='x' b=1>"),
        (Named(), "<Named>"),
        (Count(3), "<Count 3>"),
        (Share(1.5), "<Share 1.5>"),
        (Word("x"), "<Word 'x'>"),
        (nested(DEEPEST), "[" * DEEPEST + "1" + "]" * DEEPEST),
        (nested(DEEPEST + 2), "[" * (DEEPEST + 1) + "…" + "]" * (DEEPEST + 1)),
    ],
)
def test_a_value_is_spelled_as_what_it_is(value: object, text: str) -> None:
    assert spelled(value) == text


def test_of_what_never_ends_a_thousand_items_are_spelled() -> None:
    assert spelled(range(1000)).endswith("999]")
    assert spelled(range(2000)) == spelled(range(1000))


def fails() -> object:
    raise KeyError("x")


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda: 4, "v:int:4"),
        (lambda: None, "v:NoneType:None"),
        (lambda: "x" * 999, "v:str:'" + "x" * (LONGEST - 1)),
        (fails, "e:KeyError"),
        (exit, "e:SystemExit"),
    ],
)
def test_an_outcome_is_a_value_or_an_error(act: Callable[[], object], told: str) -> None:
    assert outcome(act) == told


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("gcd", ["6", "4"], "v:int:2"),
        ("gcd", ["'a'"], "e:TypeError"),
        ("nobody", [], "e:AttributeError"),
        ("gcd", ["x"], "e:ValueError"),
    ],
)
def test_a_call_is_made_with_its_arguments_as_literals(name: str, arguments: list[str], told: str) -> None:
    assert make(("math", name, arguments)) == told


def test_what_returns_nothing_and_changes_its_argument_gives_that() -> None:
    assert make(("heapq", "heapify", ["[3, 1, 2]"])) == "v:tuple:('changed', [1, 3, 2])"
    assert make(("heapq", "heapify", ["[1, 2, 3]"])) == "v:NoneType:None"


def test_a_method_is_called_on_an_object_with_the_attributes_that_a_test_saw() -> None:
    made = with_attributes(Named, {"a": 1})
    assert isinstance(made, Named)
    assert vars(made) == {"a": 1}
    assert make(("fractions", "Fraction.nobody", ["{}"])) == "e:TypeError", (
        "its fields are no plain attributes"
    )
    assert make(("argparse", "Namespace.__contains__", ["{'a': 1}", "'a'"])) == "v:bool:True"
