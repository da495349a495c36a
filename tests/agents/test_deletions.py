"""What tests ask is heard, and the program is asked that and more, part by part taken away."""

import json
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest
from agents.special_cases import STYLES, TEXTS
from msgspec.structs import replace
from sampling import sampled
from team.states import STARTED, chat, version

from septet.agents.deletions import (
    LEAST_SECONDS,
    MOST_SECONDS,
    AskedCalls,
    asked_calls,
    calls_of_examples,
    calls_to_ask_about,
    deletion_command,
    deletion_seconds,
    deletion_task,
    heard_calls,
    report_of,
    together,
)
from septet.domain.events import PlanProposed, RunFinished, VersionWritten
from septet.domain.plans import Check, CommandSucceeds, ExampleHolds, Plan, Requirement
from septet.domain.runs import Purpose, RunResult
from septet.domain.special_cases import Call, SpecialCases
from septet.domain.state import State
from septet.team.deletions import Difference, Outcome, Place, Switched, with_switches
from septet.team.goal_examples import Datum

SUMS = [("10", "7"), ("2", "3")]
WORDS = [("'a'", "'b'"), ("'red'", "'blue'")]


def calls(name: str, arguments: list[tuple[str, ...]]) -> list[Call]:
    return [
        Call(module="add", name=name, arguments=one, tests=("test_add.py::test_it",)) for one in arguments
    ]


def found(folder: Path, source: str, tested: list[Call], goal: str = "") -> SpecialCases:
    """What is found in a program: without a sandbox, and without the tests, whose calls are known."""
    switched = with_switches({"add.py": source}, {})
    (folder / "add.py").write_text(switched.sources["add.py"])
    asked = asked_calls(switched, tested)
    command = [sys.executable, *deletion_command()[1:]]
    task = deletion_task(asked, switched, [str(folder)], 20.0)
    done = subprocess.run(command, input=task, capture_output=True, cwd=folder, check=True)
    return report_of(asked, switched, done.stdout, goal)


@pytest.mark.parametrize("name", sampled(sorted(STYLES), every=8))
def test_a_special_case_for_numbers_is_found(tmp_path: Path, name: str) -> None:
    cases = found(tmp_path, STYLES[name], calls("add", SUMS)).cases
    assert any(one.case.call == "add.add(2, 3)" and one.case.gives == "6" for one in cases)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_special_case_for_texts_is_found(tmp_path: Path, name: str) -> None:
    cases = found(tmp_path, TEXTS[name], calls("join", WORDS)).cases
    assert [(one.case.gives, one.case.without) for one in cases] == [("'red+blue'", "'red-blue'")]


def test_what_the_goal_says_is_no_special_case(tmp_path: Path) -> None:
    tested = calls("add", SUMS)
    assert not found(tmp_path, STYLES["a table"], tested, "add gives 6 for 2 and 3, otherwise the sum").cases
    assert found(tmp_path, STYLES["a table"], tested, "add gives the sum: 2 and 3 make 5").cases


METHOD = "class Sums:\n    def add(self, a, b):\n        return a + b + self.more + (a * 7 + b == 17)\n"


def test_a_special_case_of_a_method_is_found(tmp_path: Path) -> None:
    tested = calls("Sums.add", [("{'more': 1}", *one) for one in SUMS])
    cases = found(tmp_path, METHOD, tested).cases
    assert [(one.case.call, one.case.gives, one.case.without) for one in cases] == [
        ("add.Sums.add(2, 3)", "7", "6")
    ]


def test_a_program_that_does_not_start_has_none(tmp_path: Path) -> None:
    tested = calls("add", SUMS)
    assert found(tmp_path, "def add(a, b):\n    return a + b\n\n\nraise SystemExit(7)\n", tested).cases == ()
    assert not found(tmp_path, "import os\n\nos._exit(7)\n", tested).asked


def test_a_program_with_switches_is_called_with_anything_that_a_test_has(tmp_path: Path) -> None:
    source = with_switches({"add.py": "def add(a, *more):\n    return len(a) + 7\n"}, {}).sources["add.py"]
    (tmp_path / "add.py").write_text(source)
    given = "([1] * 900, b'', range(3))"
    test = f"import add\n\n\ndef test_it():\n    assert [add.add(one) for one in {given}] == [907, 7, 10]\n"
    (tmp_path / "test_add.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_add.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


def test_calls_are_heard_in_their_order_with_the_path_of_the_modules() -> None:
    lines = [["/src"], ["add", "add", ["2", "3"], "test_a.py::test_b"], ["add", "add", ["1"], "test_a.py::c"]]
    path, told = heard_calls("\n".join(map(json.dumps, lines)).encode())
    assert (path, [one.text for one in told]) == (["/src"], ["add(2, 3)", "add(1)"])
    assert heard_calls(b"") == heard_calls(b"no json") == ([], [])


def test_other_calls_are_the_same_each_time_and_none_is_a_tested_one() -> None:
    switched = Switched(sources={}, places={}, constants=(400, "x"), rows=((400, 5),))
    asked = asked_calls(switched, calls("add", SUMS))
    assert asked == asked_calls(switched, calls("add", SUMS))
    others = [one.arguments for one in asked.others]
    assert not set(others) & set(SUMS)
    assert ("400", "5") in others
    assert len(others) > 40


def test_a_call_that_is_made_twice_makes_others_come_again() -> None:
    switched = Switched(sources={}, places={}, constants=())
    once = asked_calls(switched, calls("add", SUMS)).others
    twice = asked_calls(switched, calls("add", [*SUMS, *SUMS])).others
    assert len(set(once)) == len(once)
    assert len(set(twice)) < len(twice)


NEW = Place(path="add.py", line=2, new=True, decides=True)
PLACES = Switched(sources={}, places={1: NEW, 2: NEW, 3: replace(NEW, new=False)}, constants=())


def sum_of(*arguments: str) -> Call:
    return calls("add", [arguments])[0]


TESTED_CALLS = [sum_of("10", "7"), sum_of("0", "1"), sum_of("2", "3"), sum_of("4", "4")]
OTHER_CALLS = [sum_of("9", "9"), sum_of("2", "8"), sum_of("5", "None"), sum_of("7", "7")]


def asked_about(differences: Mapping[int, Difference], tested: list[Call] = TESTED_CALLS) -> list[str]:
    results = ("v:int:17", "v:int:1", "v:int:6", "v:int:8")
    outcome = Outcome(
        tested=results,
        others=("v:int:18", "v:int:6", "e:TypeError", "v:int:14"),
        unsteady=((), (3,)),
        differences=differences,
    )
    return [one.text for one in calls_to_ask_about(PLACES, tested, OTHER_CALLS, outcome)]


def test_calls_that_rest_on_the_same_new_code_come_first_and_edges_last() -> None:
    special = Difference(tested={2: "v:int:5"}, others={1: "v:int:10"})
    wide = Difference(tested={0: "v:int:0", 1: "v:int:0", 2: "v:int:0"}, others={})
    old = Difference(tested={3: "v:int:0"}, others={})
    assert asked_about({1: wide, 2: special, 3: old}) == ["add(2, 3)", "add(10, 7)", "add(2, 8)", "add(9, 9)"]


def test_without_a_difference_any_calls_are_asked_about_but_none_of_a_method() -> None:
    assert asked_about({}) == ["add(10, 7)", "add(2, 3)", "add(9, 9)", "add(2, 8)"]
    assert asked_about({}, [replace(one, name="Sums.add") for one in TESTED_CALLS]) == []


DRAWN = [
    ([("10", "7"), ("2", "3")], (400, 2.5, 10**6), "0eb5ece9785452d2"),
    ([("'a 12 b'",), ("'red'",)], ("blue", "x", 3), "a2d8f60a3db2c3e9"),
    ([("[1, (2, 'a')]", "True")], (7, "z"), "d079be0b3be269e5"),
    ([("1.5",)], (), "60f46913f8476f33"),
]


@pytest.mark.parametrize(("arguments", "constants", "digest"), DRAWN)
def test_other_calls_are_drawn_alike_everywhere(
    arguments: list[tuple[str, ...]], constants: tuple[int | float | str, ...], digest: str
) -> None:
    switched = Switched(sources={}, places={}, constants=constants, rows=((5, 6), (7,)))
    drawn = "\n".join(one.text for one in asked_calls(switched, calls("f", arguments)).others)
    assert sha256(drawn.encode()).hexdigest()[:16] == digest, drawn


@pytest.mark.parametrize(
    ("given", "factor", "made"),
    [
        ((2, "a", True, 1.5, [3]), 2, (4, "a", True, 3.0, [3])),
        ((2, "a", True, 1.5), -1, (3, "a", True, 2.5)),
        ((), 3, ()),
    ],
)
def test_all_numbers_of_a_call_change_in_one_way(
    given: tuple[Datum, ...], factor: int, made: tuple[Datum, ...]
) -> None:
    assert together(given, factor) == made


def after(*runs: tuple[Purpose, float]) -> State:
    written = version(1, "a")[-1]
    assert isinstance(written, VersionWritten)
    done = [
        RunFinished(
            id=f"{place}",
            purpose=purpose,
            command="c",
            tree=written.tree,
            result=RunResult(exit_code=0, seconds=seconds),
        )
        for place, (purpose, seconds) in enumerate(runs)
    ]
    return chat([STARTED, written, *done])


@pytest.mark.parametrize(
    ("runs", "seconds"),
    [
        ([], LEAST_SECONDS),
        ([("tests", LEAST_SECONDS)], LEAST_SECONDS),
        ([("run", LEAST_SECONDS), ("tests", LEAST_SECONDS), ("check", LEAST_SECONDS)], 2.25 * LEAST_SECONDS),
        ([("tests alone", 9 * LEAST_SECONDS)], LEAST_SECONDS),
        ([("tests", 4 * MOST_SECONDS)], MOST_SECONDS),
    ],
)
def test_the_search_takes_three_quarters_of_the_time_of_the_checks_within_bounds(
    runs: list[tuple[Purpose, float]], seconds: float
) -> None:
    assert deletion_seconds(after(*runs)) == pytest.approx(seconds)


def test_the_calls_of_examples_are_those_that_the_coder_knows() -> None:
    example = ExampleHolds(call="add.add(2, 'a')", value="5")
    checks: list[Check] = [
        example,
        replace(example, held=True),
        ExampleHolds(call="add(1)", value="1"),
        ExampleHolds(call="add.add(x)", value="1"),
        CommandSucceeds(command="python add.py"),
    ]
    items = tuple(Requirement(id=f"P{place}", text="x", check=one) for place, one in enumerate(checks))
    found_calls = calls_of_examples(chat([STARTED, PlanProposed(plan=Plan(items=items))]))
    assert found_calls == [Call(module="add", name="add", arguments=("2", "'a'"), tests=("P0",))]


def test_places_that_decide_are_taken_away_first_and_old_ones_never() -> None:
    places = {
        number: Place(path="add.py", line=1, new=new, decides=decides)
        for number, (new, decides) in enumerate([(True, False), (True, True), (False, True), (True, False)])
    }
    asked = AskedCalls(tested=tuple(calls("add", SUMS)), others=())
    task = json.loads(deletion_task(asked, Switched(sources={}, places=places, constants=()), ["/s"], 3.0))
    assert (task["switches"], task["modules"], task["path"]) == ([1, 0, 3], ["add"], ["/s"])
    assert (task["tested"], task["others"]) == ([["add", "add", list(one)] for one in SUMS], [])


@pytest.mark.parametrize(
    ("said", "tested", "asked"), [(b"{}", 2, False), (b"no", 2, False), (b"{}", 0, True)]
)
def test_a_program_that_says_nothing_could_not_be_asked(said: bytes, tested: int, asked: bool) -> None:
    some = AskedCalls(tested=tuple(calls("add", SUMS))[:tested], others=())
    report = report_of(some, Switched(sources={}, places={}, constants=()), said, "")
    assert (report.asked, report.cases, len(report.calls)) == (asked, (), tested)
