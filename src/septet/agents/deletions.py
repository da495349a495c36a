"""Finds special cases: hears what tests ask, then asks the program that and more, part by part taken away."""

import random
import re
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files

import msgspec
from msgspec.structs import replace

from septet.agents.inputs import Arguments, probes
from septet.common.values import Value
from septet.domain.plans import ExampleHolds, check_text
from septet.domain.special_cases import Call, SpecialCases
from septet.domain.state import State
from septet.team.deletions import HELPERS, Outcome, Switched, is_plain, is_trivial, special_cases
from septet.team.goal_examples import Datum, literal_arguments

PROGRAM = "deletion_program.py"
CALLS = ".septet_calls"
MOST_FUNCTIONS, MOST_TESTED, MOST_NEAR, MOST_FROM_CONSTANTS = 12, 60, 24, 120
MOST_REPEATED, MOST_TIMES = 6, 5
MOST_ROWS = 24
LEAST_SECONDS, MOST_SECONDS = 0.45, 30.0
MOST_ASKED_FUNCTIONS, MOST_OF_TESTS, MOST_OF_OTHERS = 3, 2, 2
"""Calls that a planner is asked about: a few, which it can work out by itself."""


class DeletionTask(Value):
    """The input of the deletion program."""

    path: tuple[str, ...]
    modules: tuple[str, ...]
    tested: tuple[tuple[str, str, tuple[str, ...]], ...]
    others: tuple[tuple[str, str, tuple[str, ...]], ...]
    switches: tuple[int, ...]
    seconds: float
    helpers: str


def deletion_command() -> tuple[str, ...]:
    return ("python", "-c", files("septet.agents").joinpath(PROGRAM).read_text())


def heard_calls(heard: bytes) -> tuple[list[str], list[Call]]:
    """What the tests asked of the program's functions, and where modules were found then."""
    lines = heard.splitlines()
    try:
        path = msgspec.json.decode(lines[0], type=list[str]) if lines else []
        told = [msgspec.json.decode(one, type=tuple[str, str, list[str], str]) for one in lines[1:]]
    except msgspec.MsgspecError:
        return [], []
    return path, [
        Call(module=module, name=name, arguments=tuple(given), tests=(test,))
        for module, name, given, test in told
    ]


def is_secret(state: State, check: ExampleHolds) -> bool:
    """Whether an example is held back, and the coder has not been told of it after it failed."""
    return check.held and check_text(check) not in state.plan.told


def calls_of_examples(state: State) -> list[Call]:
    """The calls of examples that the coder knows."""
    found: list[Call] = []
    for item in state.plan.items:
        if not isinstance(item.check, ExampleHolds) or is_secret(state, item.check):
            continue
        given, (path, _, _) = literal_arguments(item.check.call), item.check.call.partition("(")
        module, _, name = path.rpartition(".")
        if given and module:
            found.append(Call(module=module, name=name, arguments=tuple(map(repr, given)), tests=(item.id,)))
    return found


class AskedCalls(Value):
    """What the program is asked: what its tests ask, and more of the kind."""

    tested: tuple[Call, ...]
    others: tuple[Call, ...]


def asked_calls(switched: Switched, calls: Sequence[Call]) -> AskedCalls:
    """The calls in their order. Some of the others are made as often as a test may make one: programs count."""
    functions: dict[tuple[str, str], list[Call]] = {}
    for call in calls:
        functions.setdefault((call.module, call.name), []).append(call)
    chosen = [one[:MOST_TESTED] for one in functions.values()][:MOST_FUNCTIONS]
    tested = [call for group in chosen for call in group]
    asked = {(call.module, call.name, call.arguments) for call in tested}
    others = [
        [
            call
            for call in other_calls(group, switched)
            if (call.module, call.name, call.arguments) not in asked
        ]
        for group in chosen
    ]
    repeated = [call for group in others for call in group[:MOST_REPEATED] * (MOST_TIMES - 1)]
    is_repeated = len(tested) > len(asked)
    return AskedCalls(
        tested=tuple(tested),
        others=(*(call for group in others for call in group), *(repeated if is_repeated else ())),
    )


def deletion_seconds(state: State) -> float:
    """Three quarters of what the checks themselves took: the report tells how many places are left."""
    own = sum(run.result.seconds for run in state.work.runs if run.purpose in ("run", "tests", "check"))
    return min(MOST_SECONDS, max(LEAST_SECONDS, own * 0.75))


def deletion_task(asked: AskedCalls, switched: Switched, path: Sequence[str], seconds: float) -> bytes:
    """The input of the deletion program."""
    task = DeletionTask(
        path=tuple(path),
        modules=tuple(dict.fromkeys(one.module for one in asked.tested)),
        tested=tuple((one.module, one.name, one.arguments) for one in asked.tested),
        others=tuple((one.module, one.name, one.arguments) for one in asked.others),
        switches=tuple(
            sorted(
                (number for number, place in switched.places.items() if place.new),
                key=lambda number: not switched.places[number].decides,
            )
        ),
        seconds=seconds,
        helpers=HELPERS,
    )
    return msgspec.json.encode(task)


def report_of(asked: AskedCalls, switched: Switched, said: bytes, known: str) -> SpecialCases:
    """The calls of the tests and the special cases among them."""
    try:
        outcome = msgspec.json.decode(said, type=Outcome, strict=False)
    except msgspec.MsgspecError:
        outcome = Outcome()
    if not outcome.tested:
        return SpecialCases(calls=asked.tested, asked=not asked.tested)
    return SpecialCases(
        calls=asked.tested,
        cases=tuple(special_cases(switched, asked.tested, asked.others, outcome, known)),
        questions=calls_to_ask_about(switched, asked.tested, asked.others, outcome),
        untried=outcome.untried,
    )


def calls_to_ask_about(
    switched: Switched, tested: Sequence[Call], others: Sequence[Call], outcome: Outcome
) -> tuple[Call, ...]:
    """Of the functions that the tests call, some calls of the tests, which may want something else than the goal, and
    some that no test makes, whose results rest on the same code: that of the fewest tested calls first.
    """
    new = [one for number, one in outcome.differences.items() if switched.places[number].new]
    new.sort(key=lambda one: len(one.tested))
    unsteady = outcome.unsteady
    asked = steady_calls(tested, outcome.tested, [place for one in new for place in one.tested], unsteady[0])
    beside = steady_calls(others, outcome.others, [place for one in new for place in one.others], unsteady[1])
    found: list[Call] = []
    for function in list(dict.fromkeys((one.module, one.name) for one in asked))[:MOST_ASKED_FUNCTIONS]:
        tests = {test: None for one in tested if (one.module, one.name) == function for test in one.tests}
        for calls, most in ((asked, MOST_OF_TESTS), (beside, MOST_OF_OTHERS)):
            chosen = {one.text: one for one in calls if (one.module, one.name) == function}
            found += [replace(one, tests=tuple(tests)) for one in list(chosen.values())[:most]]
    return tuple(found)


def steady_calls(
    calls: Sequence[Call], results: Sequence[str], first: Iterable[int], unsteady: Sequence[int]
) -> list[Call]:
    """The calls of functions that give a plain value each time: `first` these, and edges last."""
    places = [
        place
        for place in dict.fromkeys((*first, *range(min(len(calls), len(results)))))
        if place not in unsteady and is_plain(results[place]) and not calls[place].is_method
    ]
    places.sort(key=lambda place: is_trivial(calls[place], results[place]))
    return [calls[place] for place in places]


def other_calls(calls: Sequence[Call], switched: Switched) -> list[Call]:
    """Inputs like those of known calls: varied, at their edges, and with what is written in the program."""
    first = calls[0]
    made = [literal_arguments(f"f({', '.join(one.arguments)})") for one in calls]
    known = [one for one in made if one is not None]
    drawn = [one.call for one in probes("f", known, near=MOST_NEAR)]
    chance = random.Random(repr(known))  # noqa: S311  # the same inputs each time
    seeds = [tuple(one) for one in known]
    written = [
        *with_constants(seeds, switched.constants, chance),
        *map(together, seeds * 3, [2, 3, -1] * len(seeds)),
    ]
    chance.shuffle(written)
    rows = [row for row in switched.rows if any(len(row) == len(one) for one in seeds)]
    found = [given for one in drawn if (given := literal_arguments(one)) is not None]
    told = dict.fromkeys(
        tuple(map(repr, one))
        for one in (*map(tuple, found), *rows[:MOST_ROWS], *written[:MOST_FROM_CONSTANTS])
    )
    return [Call(module=first.module, name=first.name, arguments=one) for one in told]


def with_constants(
    known: Sequence[Arguments], constants: Sequence[int | float | str], chance: random.Random
) -> Iterable[Arguments]:
    """Known arguments in which one or all are replaced by what the program names, or by sums and products with it."""
    for _ in range(MOST_FROM_CONSTANTS * 4):
        given = list(chance.choice(known)) if known else []
        places = [place for place, one in enumerate(given) if likes(one, constants)]
        if not places:
            return
        for place in places if chance.random() < 0.5 else [chance.choice(places)]:
            given[place] = beside(given[place], constants, chance)
        yield tuple(given)


def together(given: Arguments, factor: int) -> Arguments:
    """All numbers changed in the same way: what is equal stays so. A factor below 0 adds one instead."""
    return tuple(
        (one * factor if factor > 0 else one + 1)
        if isinstance(one, int | float) and not isinstance(one, bool)
        else one
        for one in given
    )


def likes(value: Datum, constants: Sequence[int | float | str]) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float | str | list | tuple)


def beside(value: Datum, constants: Sequence[int | float | str], chance: random.Random) -> Datum:
    """A value made of this one and of one that the program names."""
    if isinstance(value, list | tuple):
        items = list(value)
        if items:
            place = chance.randrange(len(items))
            items[place] = beside(items[place], constants, chance)
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, str):
        return text_beside(value, [one for one in constants if isinstance(one, str)], chance)
    numbers = [one for one in constants if not isinstance(one, str) and abs(one) < 10**6]
    if not isinstance(value, int | float) or not numbers:
        return value
    one = chance.choice(numbers)
    made = chance.choice(
        (one, one + 1, one - 1, one * 2, one * 3, value + one, value - one, value * one, value + 2 * one)
    )
    return int(made) if isinstance(value, int) else float(made)


def text_beside(value: str, texts: Sequence[str], chance: random.Random) -> str:
    """The text with another number in it, or with one of the program's texts in the place of a word."""
    ways: list[Callable[[], str]] = []
    if re.search(r"\d", value):
        ways += [lambda: near_number(value, chance)] * 2
    if texts:
        one = chance.choice(texts)
        words = re.findall(r"\w+", value)
        ways += [
            lambda: one,
            lambda: one,
            lambda: value + one,
            lambda: one + value,
            lambda: one + chance.choice(texts),
        ]
        if words:
            ways += [lambda: value.replace(chance.choice(words), one, 1)] * 3
    return chance.choice(ways)() if ways else value


def near_number(value: str, chance: random.Random) -> str:
    """The text with one of its numbers changed a little, as wide as it was."""
    found = list(re.finditer(r"\d+", value))
    one = chance.choice(found)
    number = max(0, int(one[0]) + chance.choice((-10, -4, -2, -1, 1, 2, 4, 8, 10, 12)))
    return value[: one.start()] + str(number).zfill(len(one[0])) + value[one.end() :]
