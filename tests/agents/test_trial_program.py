"""What a trial run says of a program: outcomes that can be compared, whatever their types print."""

import hashlib
import signal
from collections import Counter
from collections.abc import Iterator

import pytest

from septet.agents import trial_program
from septet.agents.trial_program import (
    DEEPEST,
    LONGEST_KEY,
    LoadedProgram,
    key,
    out_of_time,
    short,
    try_all,
    values_close,
)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


class Thing:
    pass


@pytest.mark.parametrize(
    ("value", "normal"),
    [
        (True, "1"),
        (False, "0"),
        (-9.0, "-9"),
        (2.5, "2.5"),
        (1 / 3, "0.333333333"),
        (1e15, "1e+15"),
        (999999999999999.0, "999999999999999"),
        (-(10**40) + 1, str(-(10**40) + 1)),
        (10**40, digest(hex(10**40))),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (1 + 2.5j, "1+2.5j"),
        (None, "None"),
        ("a", "'a'"),
        ([1, "a"], "[1,'a']"),
        ((1, 2.0), "(1,2)"),
        ((), "()"),
        ({2, 1}, "{1,2}"),
        (frozenset("ba"), "{'a','b'}"),
        ({"b": 1, "a": [2.0]}, "{'a':[2],'b':1:}"),
        (Counter("a"), "{'a':1:}"),
        ((one for one in "a"), "<generator>"),
        (iter([1]), "<list_iterator>"),
        (map(str, [1]), "<map>"),
        (zip([1], [2], strict=True), "<zip>"),
        (Thing(), "Thing"),
        (range(3), "range(0, 3)"),
    ],
)
def test_equal_values_have_one_normal_form(value: object, normal: str) -> None:
    assert key(value) == normal


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def test_a_value_is_looked_into_twenty_levels_deep() -> None:
    assert key(nested(DEEPEST)) == "[" * DEEPEST + "1" + "]" * DEEPEST
    assert key(nested(DEEPEST + 1)) == "[" * (DEEPEST + 1) + "…" + "]" * (DEEPEST + 1)
    assert "…" in key({"a": nested(DEEPEST)})
    assert "…" not in key({"a": nested(DEEPEST - 1)})


def test_a_long_outcome_is_its_beginning_and_a_digest() -> None:
    whole, long = "x" * LONGEST_KEY, "x" * (LONGEST_KEY + 1)
    assert short(whole) == whole
    assert short(long) == "x" * 80 + "…" + digest(long)


class Unequal:
    def __eq__(self, other: object) -> bool:
        raise ValueError

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # it has none


@pytest.mark.parametrize(
    ("one", "other", "close"),
    [
        (1, 1.0, True),
        (1.0, 1.0 + 9e-7, True),
        (1.0, 1.0 + 2e-6, False),
        (1e6, 1e6 + 0.9, True),
        (1e6, 1e6 + 2, False),
        (0.0, 9e-10, True),
        (0.0, 2e-9, False),
        (1j, 1j + 9e-7, True),
        ("a", "a", True),
        ("a", "b", False),
        (1, "1", False),
        ([1.0], [1.0 + 9e-7], True),
        ([1.0], [1.1], False),
        ([1.0], [1.0, 1.0], False),
        ([1.0], (1.0 + 9e-7,), False),
        ((1.0,), (1.0 + 9e-7,), True),
        ({"a": 1.0}, {"a": 1.0 + 9e-7}, True),
        ({"a": 1.0}, {"a": 1.1}, False),
        ({"a": 1.0}, {"b": 1.0}, False),
        ({"a": 1.0}, [1.0], False),
        ({1.0}, {1.0 + 9e-7}, False),
        (Unequal(), Unequal(), False),
    ],
)
def test_values_are_equal_up_to_the_last_digits_of_floats(one: object, other: object, close: bool) -> None:
    assert values_close(one, other) is close


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """As in the child process: a step that takes too long is ended by a signal."""
    before = signal.signal(signal.SIGPROF, out_of_time)
    yield
    signal.signal(signal.SIGPROF, before)


PROGRAM = """
def add(a, b=0):
    return a + b
def fill(items):
    items.append(1)
def look(items):
    len(items)
def fail():
    raise KeyError("what")
def leave():
    raise SystemExit
def spin():
    while True:
        pass
def show(value):
    return value
number = 5
"""


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        ("add(1, 2)", "v:3"),
        ("add(1.0, b=2)", "v:3"),
        ("number", "v:5"),
        ("math.floor(2.5)", "v:2"),
        ("fill([])", "v:('changed',[1])"),
        ("look([])", "v:None"),
        ("fail()", "e:KeyError"),
        ("leave()", "e:SystemExit"),
        ("number()", "e:TypeError"),
        ("nobody()", "e:NameError"),
        ("add(", "e:SyntaxError"),
        ("show('x' * 300)", "v:" + short("'" + "x" * 300 + "'")),
    ],
)
def test_the_outcome_of_a_call_is_its_value_its_error_or_what_it_changed(call: str, outcome: str) -> None:
    assert LoadedProgram(PROGRAM).call(call) == outcome


@pytest.mark.parametrize(
    ("example", "told"),
    [
        ({"call": "add(1, 2)", "left": "add(1, 2)", "right": "3"}, (True, "v:3")),
        ({"call": "add(1, 2)", "left": "add(1, 2)", "right": "4"}, (False, "v:3")),
        ({"call": "add(1, 2)", "left": "add(1, 2)", "right": "nobody"}, (False, "v:3")),
        ({"call": "fail()", "left": "fail()", "right": "3"}, (False, "e:KeyError 'what'")),
        ({"call": "fail()", "raises": "LookupError"}, (True, "e:KeyError")),
        ({"call": "fail()", "raises": "ValueError"}, (False, "e:KeyError")),
        ({"call": "number", "raises": "LookupError"}, (False, "v:5")),
        ({"call": "number", "holds": "number > 4"}, (True, "v:5")),
        ({"call": "number", "holds": "number > 5"}, (False, "v:5")),
        ({"call": "number", "holds": "'yes'"}, (True, "v:5")),
        ({"call": "number", "left": "show('x' * 300)", "right": "1"}, (False, "v:'" + "x" * 199)),
    ],
)
def test_an_example_holds_by_value_by_condition_or_by_its_error(
    example: dict[str, str], told: tuple[bool, str]
) -> None:
    assert LoadedProgram(PROGRAM).check(example) == told


def test_a_program_that_never_ends_costs_three_steps_and_then_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trial_program, "STEP_SECONDS", 0.02)
    program = LoadedProgram(PROGRAM)
    assert [program.call(one) for one in ("spin()", "number", "spin()", "number")] == [
        "t:",
        "v:5",
        "t:",
        "v:5",
    ]
    assert program.check({"call": "spin()", "left": "spin()", "right": "1"}) == (False, "t:")
    assert program.call("number") == "t:", "it has used up its time"


def test_a_program_that_does_not_load_has_no_outcomes() -> None:
    program = LoadedProgram("number = 5\nraise ValueError")
    assert (program.call("number"), program.call("add(1, 2)")) == ("v:5", "e:NameError")


def test_programs_run_apart_a_few_at_a_time_and_are_told_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trial_program, "PROGRAM_SECONDS", 20.0)
    programs = [PROGRAM, "import os\nos._exit(3)", "number = 7\nimport sys\nsys.stdout.write('x')", PROGRAM]
    example = {"call": "number", "left": "number", "right": "5"}
    told = try_all(programs, ["number"], [example], width=2)
    mine = [["check", True, "v:5"], ["call", "v:5"]]
    assert told == [mine, [], [["check", False, "v:7"], ["call", "v:7"]], mine]


def test_a_program_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_program, "PROGRAM_SECONDS", 0.2)
    sleepy = "import signal\nsignal.pause()"
    assert try_all([sleepy], ["number"], [], width=1) == [[]]
