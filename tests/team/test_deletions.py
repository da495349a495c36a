"""What is taken away, and what of a program is there for its tests only."""

import pytest

from septet.domain.special_cases import Call
from septet.team.controls import parse_module
from septet.team.deletions import (
    OFF,
    Difference,
    Outcome,
    Switched,
    can_have_special_cases,
    is_named,
    is_trivial,
    special_cases,
    with_switches,
)

PROGRAM = """\
CASES = {(2, 3): 6}


def add(a, b):
    if a == 9:
        return 0
    return CASES.get((a, b), a + b)
"""


def run(source: str, call: str, *off: int) -> object:
    """The result with these places taken away; the switches live among the builtins, as in the sandbox."""
    space: dict[str, object] = {"__name__": "add"}
    exec("def start():\n    import builtins\n    vars(builtins).pop('_septet_off', None)\nstart()", space)
    exec(source.partition("CASES")[0], space)
    exec(f"{OFF}.update({set(off)!r})", space)
    exec(source, space)
    return eval(call, space)


def test_a_program_with_switches_does_the_same_until_a_place_is_taken_away() -> None:
    made = with_switches({"add.py": PROGRAM}, {})
    source = made.sources["add.py"]
    assert [run(source, one) for one in ("add(2, 3)", "add(9, 4)", "add(4, 4)")] == [6, 0, 8]
    tables = [number for number, place in made.places.items() if place.line == 1 and place.decides]
    assert [run(source, "add(2, 3)", number) for number in tables] == [5], "without the table it is the sum"


def test_what_has_one_shape_has_one_switch() -> None:
    one = "def f(n):\n    if n == 2:\n        return 'a'\n"
    two = one + "    if n == 3:\n        return 'b'\n"
    assert len(with_switches({"f.py": one}, {}).places) == len(with_switches({"f.py": two}, {}).places)


def test_only_what_the_change_adds_is_taken_away() -> None:
    after = PROGRAM.replace("a == 9", "a == 8")
    places = with_switches({"add.py": after}, {"add.py": PROGRAM}).places.values()
    assert {place.line for place in places if place.new and place.decides} == {5}


@pytest.mark.parametrize(
    "source",
    [
        "from __future__ import annotations\n\n\ndef f(a: int = 2) -> dict[str, int]:\n    return {'x': a}\n",
        "class A:\n    x: int = 3\n\n    @property\n    def y(self):\n        'd'\n        return self.z[1:2, 3]\n",
        "async def f(x):\n    async with x as y:\n        return [z async for z in y if z] and f'{x:>{y}}'\n",
        "def f(*a, **k):\n    try:\n        del a[0], k\n    except* (ValueError, KeyError):\n        raise\n",
        "def f(x):\n    match x:\n        case [1, *r] | {'a': r} if r:\n            return r\n",
        "f = lambda x, *y: (yield x) @ y[0, 1:2]\nx = y = {**{}, 1: 2}\nx[1], y = 2, 3\n",
    ],
)
def test_any_program_can_have_switches(source: str) -> None:
    assert parse_module(with_switches({"f.py": source}, {}).sources["f.py"]) is not None
    compile(with_switches({"f.py": source}, {}).sources["f.py"], "f.py", "exec")


def test_a_program_without_constants_knows_no_input() -> None:
    assert not can_have_special_cases({"a.py": "def f(n):\n    'Doubles 2.'\n    return n + n or 0\n"}, {})
    assert can_have_special_cases({"a.py": "def f(n):\n    return n * 2\n"}, {})
    assert not can_have_special_cases({"a.py": PROGRAM}, {"a.py": PROGRAM})
    assert not can_have_special_cases({"test_a.py": "x = 7"}, {})


def call(*arguments: str) -> Call:
    return Call(module="app", name="f", arguments=arguments, tests=("test_app.py::test_it",))


@pytest.mark.parametrize(
    ("arguments", "gives", "trivial"),
    [
        (("0",), "v:int:1", True),
        (("[]", "''"), "v:int:1", True),
        (("None", "-1"), "v:int:1", True),
        (("2",), "v:bool:True", True),
        (("2",), "v:int:4", False),
        (("2", "0"), "v:int:4", False),
        (("'a'",), "v:str:'b'", False),
    ],
)
def test_the_edges_of_what_can_be_asked(arguments: tuple[str, ...], gives: str, trivial: bool) -> None:
    assert is_trivial(call(*arguments), gives) == trivial


@pytest.mark.parametrize(
    ("known", "named"),
    [
        ("the plural of child is children", True),
        ("Child: CHILDREN!", True),
        ("child is a word. children are people", False),
        ("grandchild has grandchildren", False),
    ],
)
def test_what_one_sentence_says_of_a_call_is_wanted(known: str, named: bool) -> None:
    assert is_named(call("'child'"), "v:str:'children'", known) == named


def judged(
    others: dict[int, str], results: list[str], gives: str = "v:int:6", without: str = "v:int:5"
) -> int:
    """How many special cases are found where taking one place away changes `f(2, 3)` and these other calls."""
    place = next(iter(with_switches({"a.py": "def f(a, b):\n    return a == 2\n"}, {}).places.values()))
    switched = Switched(sources={}, places={1: place}, constants=(2, 3, 6, 77))
    asked = [call(str(number + 20), "77") for number in range(len(results))]
    outcome = Outcome(
        tested=(gives,),
        others=tuple(results),
        differences={1: Difference(tested={0: without}, others=others)},
    )
    return len(special_cases(switched, [call("2", "3")], asked, outcome, ""))


SUMS = [f"v:int:{number}" for number in range(8)]


def test_code_that_nothing_else_needs_is_a_special_case() -> None:
    assert judged({}, SUMS) == 1
    assert judged({0: "v:int:9", 3: "v:int:9"}, SUMS) == 0, "others need it too"
    assert judged({}, ["e:KeyError"] * 8, without="e:KeyError") == 1, "a list of what is tested"
    assert judged({}, ["v:int:1"] * 8, gives="v:int:4711", without="v:int:1") == 0, "computed, and no list"


@pytest.mark.parametrize(
    ("source", "call", "results"),
    [
        (
            "def f(n):\n    if n == 2 or n > 5:\n        return 'a'\n    return 'b'\n",
            "f(2)",
            ["2! 'b'", "2! 'a'", "2! 'a'", "2! 'a'", "1 'a'"],
        ),
        ("def f(n):\n    return 'a' if not n else 'b'\n", "f(2)", ["2! 'a'", "2! 'b'", "1 'b'"]),
        ("def f(n):\n    return n - 3\n", "f(5)", ["2 5", "2 3", "1 2"]),
        ("def f(n):\n    return n + 1 == 6\n", "f(5)", ["2 True", "2 True", "2! False", "2! True", "1 True"]),
        ("def f(n):\n    return max(n, 7)\n", "f(5)", ["2 5", "2 7", "2 7", "1 7"]),
        ("def f(s):\n    return s.replace('a', 'b')\n", "f('cat')", ["2 'a'", "2 'b'", "2 'cat'", "1 'cbt'"]),
        ("def f(s):\n    return s.upper()\n", "f('cat')", ["1 'CAT'"]),
        ("def f(n):\n    return isinstance(n, int)\n", "f(5)", ["1 True"]),
        ("def f(n):\n    return n in [1, 5]\n", "f(5)", ["2! False", "2! False", "2! True", "1 True"]),
        ("def f(n):\n    return [n, 5]\n", "f(5)", ["1 [5, 5]"]),
        ("def f(n):\n    return [(1, 2), (n, 4)]\n", "f(5)", ["2! []", "1 [(1, 2), (5, 4)]"]),
        ("def f(n):\n    a, b = 1, 2\n    return a, b, n\n", "f(5)", ["2! ValueError", "1 (1, 2, 5)"]),
        (
            "def f(n):\n    return {5: 'x', **{6: 'y'}}.get(n)\n",
            "f(5)",
            ["2! None", "2! 'x'", "2 5", "2 5", "2 {5: 'x', 6: 'y'}", "1 'x'"],
        ),
        ("def f(n):\n    return {n, 4}\n", "f(5)", ["2! set()", "1 {4, 5}"]),
        ("def f(n):\n    n += 2\n    return n\n", "f(5)", ["2 5", "1 7"]),
        ("def f(n):\n    d = {}\n    d['x'] = n\n    return d\n", "f(5)", ["3 {}", "1 {'x': 5}"]),
        ("def f(n):\n    x = n\n    return x\n", "f(5)", ["1 5"]),
        (
            "def f(n):\n    n.append(3)\n    del n[0]\n    return n\n",
            "f([5])",
            ["2 []", "2 []", "2 []", "2 []", "3 [5, 3]", "1 [3]"],
        ),
        (
            "def f(n):\n    try:\n        return 6 // n\n    except ZeroDivisionError:\n        return 0\n",
            "f(0)",
            ["3 6", "3 0", "4! ZeroDivisionError", "1 0"],
        ),
        (
            "def f(n):\n    try:\n        return 6 // n\n    except:\n        return 0\n",
            "f(0)",
            ["3 6", "3 0", "5! ZeroDivisionError", "1 0"],
        ),
        (
            "def f(n):\n    match n:\n        case 5:\n            return 1\n        case _:\n            return 2\n",
            "f(5)",
            ["3! 2", "1 1"],
        ),
        (
            "def f(n):\n    match n:\n        case int() if n > 3:\n            return 'z'\n    return 'y'\n",
            "f(5)",
            ["3! 'y'", "3! 'y'", "3! 'z'", "1 'z'"],
        ),
        (
            "def f(n):\n    return [i for i in range(n) if i > 2]\n",
            "f(5)",
            ["2! []", "2! [0, 1, 2, 3, 4]", "1 [3, 4]"],
        ),
        (
            "def f(n):\n    while n > 3:\n        return 'x'\n    return 'y'\n",
            "f(5)",
            ["2! 'y'", "2! 'x'", "1 'x'"],
        ),
        (
            "def f(n, k=2 + 1, *, m=4 * 2):\n    return k, m\n",
            "f(5)",
            ["1 (2, 8)", "1 (1, 8)", "1 (3, 4)", "1 (3, 2)", "1 (3, 8)"],
        ),
        (
            "def f(n):\n    def g(x):\n        return x\n    return g(n)\n",
            "f(5)",
            ["2 UnboundLocalError", "4 5", "4 5", "4 5", "1 5"],
        ),
        (
            "class A:\n    def __init__(self, n):\n        self.n = n\n\n\ndef f(n):\n    return A(n).n\n",
            "f(5)",
            ["3 AttributeError", "7 AttributeError", "7 AttributeError", "7 5", "6 5"],
        ),
        ("f = lambda n: n * 2\n", "f(5)", ["1 5", "1 2"]),
        ("def f(n):\n    x: int = n % 3\n    return x\n", "f(5)", ["2 5", "2 3", "1 2"]),
        ("def f(n):\n    return f'{n + 1:>{n - 2}}'\n", "f(5)", ["2 '  5'", "2 '  1'", "1 '  6'"]),
        ("def f(n):\n    return n[1 + 1, 3]\n", "f({(2, 3): 'x'})", ["2 KeyError", "2 KeyError", "1 'x'"]),
        ("def f(n):\n    return n[1:]\n", "f('abc')", ["1 'bc'"]),
        ("def f(n):\n    return -n\n", "f(5)", ["1 -5"]),
        (
            "def f(n):\n    return n and n > 3\n",
            "f(5)",
            ["2! False", "2! True", "2! False", "2! True", "1 True"],
        ),
        ("def f(n):\n    return True or n\n", "f(5)", ["2! True", "2! True", "1 True"]),
        ("def f(n):\n    return max(*n)\n", "f([5, 6])", ["1 6"]),
    ],
)
def test_each_place_can_be_taken_away_alone(source: str, call: str, results: list[str]) -> None:
    """The line of each place, marked if it decides, and what comes out without it."""
    made = with_switches({"f.py": source}, {})
    found: list[str] = []
    for number, place in made.places.items():
        try:
            gives = repr(run(made.sources["f.py"], call, number))
        except Exception as error:
            gives = type(error).__name__
        found.append(f"{place.line}{'!' if place.decides else ''} {gives}")
    assert found == results
