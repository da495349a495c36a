"""Examples that a goal states, and those that it does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.team.goal_examples import (
    literal_arguments,
    seen_as_stated,
    stated_examples,
    token_ends,
    wanted_names,
)

FORMS = {
    "Write f.\nassert f(2) == 4": ["f(2) == 4"],
    "assert set(f((3, 4),(5, 7))) == set((4, 5))": ["set(f((3, 4), (5, 7))) == set((4, 5))"],
    "assert math.isclose(vol(10), 41.5, rel_tol=0.001)": ["math.isclose(vol(10), 41.5, rel_tol=0.001)"],
    "assert f([1,\n 2]) == [\n 1], 'message'": ["f([1, 2]) == [1]"],
    "assert not f(3)": ["not f(3)"],
    "assert f(3) is None": ["f(3) == None"],
    'def f(x):\n    """Doubles.\n    >>> f(2)\n    4\n    >>> f(\'a\')\n    \'aa\'\n    """': [
        "f(2) == 4",
        "f('a') == 'aa'",
    ],
    ">>> f([1])\n[1,\n 2]\n\ntext": ["f([1]) == [1, 2]"],
    ">>> f([1,\n... 2,\n...3])\n6": ["f([1, 2, 3]) == 6"],
    ">>> f(0)\nTraceback (most recent call last):\n  ...\nValueError: no": ["f(0) raises ValueError"],
    "f(2) returns 4.": ["f(2) == 4"],
    "f(2) returns 4, f(3) returns 9 and so on": ["f(2) == 4", "f(3) == 9"],
    "f(2) -> 4": ["f(2) == 4"],
    "f(2) => [1, 2]": ["f(2) == [1, 2]"],
    "f(2) = 4": ["f(2) == 4"],
    "f(2) == 4 # doubled": ["f(2) == 4"],
    "f(2) # 4": ["f(2) == 4"],
    "f(2)   # => 4": ["f(2) == 4"],
    "f(2) ➞ -4.5": ["f(2) == -4.5"],
    "`f(2)` should return `'a b'`.": ["f(2) == 'a b'"],
    "For example, f('x') is 'y', because": ["f('x') == 'y'"],
    "f(1.5) gives the list [1]": ["f(1.5) == [1]"],
    "f(-1) raises a ValueError.": ["f(-1) raises ValueError"],
    "f(-1) should raise ValueError": ["f(-1) raises ValueError"],
    "f(n) returns True if n is even": [],
    "f(2) is even": [],
    "f(2) returns 4 * x": [],
    "f(2) returns abc": [],
    "Use len([1]) == 1 of them": [],
    "def f(a=2): return 3": [],
    "f(2) != 4": [],
    "def two(nums, target):\n Input: nums = [2,7], target = 9\n Output: [0,1]": ["two([2, 7], 9) == [0, 1]"],
    "def g(lst):\n For lst = [1,2,3] should return 6.\n For lst = [] the output should be 0.": [
        "g([1, 2, 3]) == 6",
        "g([]) == 0",
    ],
    "def g(n):\n    Example: g(3) == True; if n = 5, it returns False": ["g(3) == True", "g(5) == False"],
    "def g(n):\n Given n = 2, 4 is what comes out": [],
    "def g(n):\n For n = 2 it returns what it should": [],
    "def g(n):\n For n = 2 it returns 4": ["g(2) == 4"],
    'f("It\'s (a) trap") => "no"': ["f(\"It's (a) trap\") == 'no'"],
    "f(2) → {'a': 1}": ["f(2) == {'a': 1}"],
    "f(float('inf')) == 1": ["f(float('inf')) == 1"],
    "f((1, 2)): (2, 1)": ["f((1, 2)) == (2, 1)"],
    "f('2020-01-01') returns '01.01.2020'": ["f('2020-01-01') == '01.01.2020'"],
    "first('a b', 1) == ['a']": ["first('a b', 1) == ['a']"],
    "f(4) returns 2 - the root": ["f(4) == 2"],
    "add(2, 3) should be 5\nadd(0, 0) should be 0": ["add(2, 3) == 5", "add(0, 0) == 0"],
    "obj.f(2) == 4": [],
    "def f(): 42": [],
    ">>> x = f(2) # 4\n": [],
    "assert f(2) == y, f(3) == 9": [],
    "class Two(3): 4": [],
    r"f('a\\') == 1": [r"f('a\\') == 1"],
    r"f('\'') == 1, f('b') == 2": ['f("\'") == 1', "f('b') == 2"],
    "assert f(x=2) == 4": ["f(x=2) == 4"],
    "assert math.sqrt(4) == 2": [],
    "assert f(lambda: 2) == 4": [],
    "assert tool.f(2) == 4": ["tool.f(2) == 4"],
    "assert 4 == f(2)": ["f(2) == 4"],
    "assert f(2) < 4": ["f(2) < 4"],
    "assert f(2) != 4": ["f(2) != 4"],
    "assert f(2) == f(3)": [],
    "assert 1 < f(2) < 3": ["1 < f(2) < 3"],
    "assert sum(10, 15) == 6": ["sum(10, 15) == 6"],
    "assert size((1, 2)) == sys.getsizeof((1, 2))": ["size((1, 2)) == sys.getsizeof((1, 2))"],
}


@pytest.mark.parametrize("goal", FORMS)
def test_examples_are_read_in_the_forms_that_goals_have(goal: str) -> None:
    assert [str(one) for one in stated_examples(goal)] == FORMS[goal]


def test_what_examples_call_is_wanted_else_what_is_defined_last() -> None:
    assert wanted_names("assert is_even(2) == True") == ["is_even"]
    assert wanted_names("def helper(x):\n return x\n\ndef last(x):\n    '''do'''") == ["last"]
    assert wanted_names("Write a program that prints primes") == []


@given(goal=st.text(alphabet="f(12)=> 'a\n.,\"[]assert", max_size=80))
def test_any_goal_can_be_read(goal: str) -> None:
    for one in stated_examples(goal):
        assert str(one)


@pytest.mark.parametrize(
    ("goal", "seen"),
    [
        ("assert f(2) == 4", "f(9)"),
        ("assert set(f((3, 4))) == set((4, 3))", "set(f(9))"),
        ("assert not f('ac')", "bool(f(9))"),
        ("assert f('ac')", "bool(f(9))"),
        ("assert math.isclose(f(1), 2.5)", "f(9)"),
        ("assert f(1) == f(1)", "f(9)"),
        ("assert sorted(f(1)) == [1]\nassert f(2) == [2]", "f(9)"),
        ("assert sorted(f(1)) == [1]\nassert sorted(f(2)) == [2]", "sorted(f(9))"),
        ("f(-1) raises ValueError", "f(9)"),
        ("", "f(9)"),
    ],
)
def test_other_calls_are_seen_as_the_examples_see_theirs(goal: str, seen: str) -> None:
    assert seen_as_stated("f(9)", stated_examples(goal)) == seen


@pytest.mark.parametrize(
    ("text", "place", "ends"),
    [
        ("ab", 1, False),
        ("a1", 1, False),
        ("a_", 1, False),
        ("a b", 1, True),
        ("a b", 2, False),
        ("a)", 1, True),
        ("a", 1, True),
        (")b", 1, True),
        (")_", 1, True),
    ],
)
def test_a_token_ends_where_no_letter_goes_on(text: str, place: int, ends: bool) -> None:
    assert token_ends(text, place) == ends


@pytest.mark.parametrize(
    ("call", "values"),
    [
        ("f(1, 'a', [2], (3,), None)", [1, "a", [2], (3,), None]),
        ("f(set([1, 1]), tuple([2]), frozenset())", [{1}, (2,), frozenset[int]()]),
        ("f()", []),
        ("f(x=1)", None),
        ("f(x)", None),
        ("f(set(1))", None),
        ("2", None),
    ],
)
def test_the_arguments_of_a_call_are_values_if_all_of_them_are_literals(
    call: str, values: list[object] | None
) -> None:
    assert literal_arguments(call) == values
