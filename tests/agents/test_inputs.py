"""More inputs for a function: near to known ones, and far from them."""

import ast
import random
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from septet.agents.inputs import changed, edge_values, probes, seeds_from_calls, seeds_from_signature
from septet.team.goal_examples import Datum

SEEDS: dict[str, list[list[Datum]]] = {
    "numbers": [[[3, 4, 5, 6], [5, 7, 4, 10]]],
    "place": [[[12, 3, 5, 7, 19], 2]],
    "text": [["abcabc"]],
    "whole": [[5]],
    "nested": [[[["x", "y"], ["a", "b"]]]],
    "mixed": [[(1, "a", 2.5), 3]],
    "more": [[{"a": 1}, {1, 2}, True, 1j]],
}


@pytest.mark.parametrize("name", SEEDS)
def test_known_calls_come_first_then_near_ones_then_far_ones(name: str) -> None:
    found = probes("f", SEEDS[name])
    assert len(found) > 10
    assert found == probes("f", SEEDS[name])
    nears = [one.near for one in found]
    assert nears == sorted(nears, reverse=True)
    assert not nears[-1]
    for one in found:
        assert isinstance(ast.parse(one.call, mode="eval").body, ast.Call)


def test_what_all_known_calls_share_holds_for_near_ones() -> None:
    near = [ast.literal_eval(one.call[1:]) for one in probes("f", [[5], [12], [70]]) if one.near]
    assert all(isinstance(value, int) and value > 0 for value in near)
    far = [one.call for one in probes("f", [[5], [12], [70]]) if not one.near]
    assert {"f(0)", "f(-1)"} & set(far)


def test_seeds_come_from_literal_calls_of_the_usual_arity() -> None:
    calls = ["f(1, 2)", "f(3, 4)", "f(5)", "g(1, 2)", "f(x, 1)"]
    assert seeds_from_calls(calls, "f") == [[1, 2], [3, 4]]
    assert seeds_from_calls(["g()"], "f") == []


def test_without_calls_annotations_say_what_a_function_takes() -> None:
    source = "def f(words: list[str], n: int, flag: bool = False, *, key=None): ..."
    (first, *_) = seeds_from_signature(source, "f")
    assert [type(one) for one in first] == [list, int]
    assert seeds_from_signature("def g(): ...", "f") == []
    assert seeds_from_signature("def f(", "f") == []


LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)


@given(values=st.lists(LITERALS, min_size=1, max_size=3))
def test_any_arguments_give_calls_that_parse(values: list[Datum]) -> None:
    for one in probes("f", [values], near=6, far=4):
        assert isinstance(ast.parse(one.call, mode="eval").body, ast.Call)


@pytest.mark.parametrize(
    ("annotation", "values"),
    [
        ("int", [3, 12, 7]),
        ("float", [2.5, 10.0, 0.75]),
        ("str", ["hello world", "Python", "abcabc"]),
        ("bool", [True, False, True]),
        ("dict[str, int]", [{"a": 1, "b": 2}, {"x": 3}, {"a": 1, "b": 2}]),
        ("Optional[str]", ["hello world", "Python", "abcabc"]),
        ("Union[float, int]", [2.5, 10.0, 0.75]),
        ("typing.Sequence[int]", [[3, 1, 2], [5, 5, -1, 0], [1]]),
        ("float | None", [2.5, 10.0, 0.75]),
        ("Any", [3, 12, 7]),
        ("Unknown", [3, 12, 7]),
        ("list[str]", [["hello world", "Python", "abcabc"]] * 3),
        ("tuple[float, ...]", [(2.5, 10.0, 0.75)] * 3),
        ("set[bool]", [{True, False}] * 3),
        ("list[list[int]]", [[[1, 2]], [[1, 2], [3, 4]], [[1, 2], [3, 4]]]),
    ],
)
def test_a_signature_says_what_a_function_may_be_called_with(annotation: str, values: list[Datum]) -> None:
    source = f"def f(self, a: {annotation}, b, c=1):\n    pass\n"
    found = seeds_from_signature(source, "f")
    assert found == [[value, number] for value, number in zip(values, [3, 12, 7], strict=True)]
    assert [type(one[0]) for one in found] == [type(value) for value in values]


@pytest.mark.parametrize("source", ["def g(a): pass", "def f(:", "f\0"])
def test_where_no_such_function_is_there_are_no_arguments(source: str) -> None:
    assert seeds_from_signature(source, "f") == []


def test_the_other_truth_value_is_near() -> None:
    calls = {one.call for one in probes("f", [[True]]) if one.near}
    assert {"f(True)", "f(False)"} <= calls
    assert [changed(value, random.Random(1)) for value in (True, False)] == [False, True]


DRAWN: dict[str, dict[str, str | list[str]]] = yaml.safe_load(
    Path(__file__).with_name("drawn_inputs.yaml").read_text()
)


@pytest.mark.parametrize("function", DRAWN)
def test_inputs_are_drawn_alike_everywhere_so_that_outcomes_can_be_compared(function: str) -> None:
    known = ast.literal_eval(str(DRAWN[function]["known"]))
    found = probes(function, known, near=8, far=8)
    assert [one.call.removeprefix(function) for one in found if one.near] == DRAWN[function]["near"]
    assert [one.call.removeprefix(function) for one in found if not one.near] == DRAWN[function]["far"]


SPECIAL = {
    "True": "True, False",
    "6": "0, 1, -1, 2, 10, -7, 97, 100, 1000, -6, 7, 5, 60",
    "2.5": "0.0, 1.0, -1.5, 0.1, 100.0",
    "'aB'": "'', 'a', ' ', 'A b', 'aa', 'ABC', 'é ü 你好', '12', 'a-b_c!', '\\n', 'AB', 'ab', 'aBaB', ' aB '",
    "[True, 2]": "[], [True], [True, 2, True, 2], [True, True, True], [True, 2], [False, 2]",
    "((),)": "(), ((),), ((), ()), ((), (), ()), ((),)",
    "[]": "[]",
    "{1}": "set()",
    "{'a': 1}": "{}",
    "3j": "0j, (1+1j), (-0-2j)",
    "None": "",
}


@pytest.mark.parametrize("value", SPECIAL)
def test_each_type_has_its_special_values(value: str) -> None:
    assert ", ".join(map(repr, edge_values(ast.literal_eval(value)))) == SPECIAL[value]


@pytest.mark.parametrize(("length", "is_there"), [(2000, True), (2001, False)])
def test_a_call_that_is_too_long_to_be_told_is_left_out(length: int, is_there: bool) -> None:
    text = "a" * (length - len("f('')"))
    assert (f"f({text!r})" in {one.call for one in probes("f", [[text]], near=2, far=2)}) == is_there
