"""Generates inputs for a function from the arguments of known calls and from annotations; random with a fixed seed.

An input is *near* if it has every property that all known calls share (positive, sorted, of one length, only lower
case …), else *far*: empty, negative, large, with duplicates, with other characters. Correct programs may differ on
far inputs, but rarely on near ones.
"""

import ast
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence

from septet.common.values import Value
from septet.team.goal_examples import Datum, literal_arguments

Arguments = tuple[Datum, ...]
Property = Callable[[Arguments], bool]

NEAR = 32
FAR = 16
TRIES = 12
"""Tries per wanted near input."""
LONGEST_CALL = 2000
CHARACTERS = "aAbzZ019 _-.,!é"
CLASSES: tuple[Callable[[str], bool], ...] = (str.islower, str.isupper, str.isdigit, str.isspace)
EDGES: dict[type, tuple[Datum, ...]] = {
    bool: (True, False),
    int: (0, 1, -1, 2, 10, -7, 97, 100, 1000),
    float: (0.0, 1.0, -1.5, 0.1, 100.0),
    str: ("", "a", " ", "A b", "aa", "ABC", "é ü 你好", "12", "a-b_c!", "\n"),
    list: ([],),
    tuple: ((),),
    set: (set(),),
    dict: ({},),
    complex: (0j, 1 + 1j, -2j),
}
SAMPLES: dict[str, tuple[Datum, ...]] = {
    "int": (3, 12, 7),
    "float": (2.5, 10.0, 0.75),
    "str": ("hello world", "Python", "abcabc"),
    "bool": (True, False),
    "list": ([3, 1, 2], [5, 5, -1, 0], [1]),
    "tuple": ((3, 1, 2), (5, 5, -1, 0), (1,)),
    "set": ({1, 2, 3}, {5}),
    "dict": ({"a": 1, "b": 2}, {"x": 3}),
    "complex": (1 + 2j, 3j),
    "None": (None,),
}


class Probe(Value):
    """A call for which the outcomes of programs are compared."""

    call: str
    near: bool


def probes(function: str, seeds: Sequence[Sequence[Datum]], near: int = NEAR, far: int = FAR) -> list[Probe]:
    """The known calls, then near and far ones, without duplicates. `seeds` are the arguments of known calls."""
    known = [tuple(one) for one in seeds]
    if not known or not known[0]:
        return [Probe(call=f"{function}()", near=True)] if known else []
    arity = len(known[0])
    known = [one for one in known if len(one) == arity]
    chance = random.Random(f"{function}{known!r}")  # noqa: S311
    drawn = [varied(chance.choice(known), known, chance) for _ in range(near * TRIES)]
    properties = shared_properties(known, (*LOOSE, *STRICT))
    if len(fitting(function, drawn, properties)) < near // 2:
        properties = shared_properties(known, LOOSE)
    close = list(fitting(function, [*known, *drawn], properties))[: near + len(known)]
    special = list(edges(known, chance))
    chance.shuffle(special)
    outside = calls_without_properties(function, special, properties)
    astray = calls_without_properties(function, drawn, properties)
    far_calls = dict.fromkeys([*outside[: far - far // 4], *astray[: far // 4]])
    return [
        *(Probe(call=call, near=True) for call in close),
        *(Probe(call=call, near=False) for call in far_calls),
    ]


def fitting(function: str, drawn: Sequence[Arguments], properties: Sequence[Property]) -> dict[str, None]:
    """The calls that have all properties, without duplicates."""
    fit = (one for one in drawn if all(holds(test, one) for test in properties))
    calls = dict.fromkeys(written(function, one) for one in fit)
    return {call: None for call in calls if len(call) <= LONGEST_CALL}


def calls_without_properties(
    function: str, drawn: Sequence[Arguments], properties: Sequence[Property]
) -> list[str]:
    """The calls that lack a property, without duplicates."""
    calls = dict.fromkeys(
        written(function, one) for one in drawn if not all(holds(test, one) for test in properties)
    )
    return [call for call in calls if len(call) <= LONGEST_CALL]


def written(function: str, arguments: Arguments) -> str:
    return f"{function}({', '.join(map(as_literal, arguments))})"


def as_literal(value: Datum) -> str:
    """Like `repr`, but a valid expression for every value, also inf and nan."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)


def shared_properties(known: Sequence[Arguments], tests: Sequence[Callable[[Datum], bool]]) -> list[Property]:
    """The properties that all known calls have."""
    candidates = [*of_places(len(known[0]), tests), *of_pairs(len(known[0]))]
    return [one for one in candidates if all(holds(one, arguments) for arguments in known)]


def holds(one: Property, arguments: Arguments) -> bool:
    try:
        return bool(one(arguments))
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError):
        return False


def of_places(arity: int, tests: Sequence[Callable[[Datum], bool]]) -> Iterator[Property]:
    for place in range(arity):
        for test in tests:
            yield lambda arguments, place=place, test=test: test(arguments[place])
        for kind in CLASSES:
            yield (
                lambda arguments, place=place, kind=kind: (
                    not any(kind(char) for char in characters(arguments[place]))
                )
            )
        yield lambda arguments, place=place: all(char.isascii() for char in characters(arguments[place]))
        yield lambda arguments, place=place: all(
            char.isalnum() or char == " " for char in characters(arguments[place])
        )
        yield lambda arguments, place=place: set(characters(arguments[place])) <= {"0", "1"}


def of_pairs(arity: int) -> Iterator[Property]:
    for one in range(arity):
        for other in range(arity):
            if one == other:
                continue
            for test in PAIR:
                yield lambda arguments, one=one, other=other, test=test: test(
                    arguments[one], arguments[other]
                )


def numbers_in(value: Datum) -> list[float]:
    """All numbers in a nested value."""
    if isinstance(value, bool):
        return []
    if isinstance(value, int | float):
        return [value]
    return [number for one in parts(value) for number in numbers_in(one)]


def characters(value: Datum) -> str:
    if isinstance(value, str):
        return value
    return "".join(characters(one) for one in parts(value))


def parts(value: Datum) -> list[Datum]:
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return []


def sized(value: Datum) -> list[Datum]:
    """The items of a container or the characters of a text; raises TypeError for what has no length."""
    if isinstance(value, str):
        return list(value)
    if isinstance(value, list | tuple | set | frozenset | dict):
        return list(value)
    raise TypeError


def matrix_rows(value: Datum) -> list[list[Datum]]:
    found = [sized(one) for one in sized(value) if not isinstance(one, str)]
    if not found:
        raise ValueError
    return found


LOOSE: tuple[Callable[[Datum], bool], ...] = (
    lambda value: all(number > 0 for number in numbers_in(value)),
    lambda value: all(number >= 0 for number in numbers_in(value)),
    lambda value: all(float(number).is_integer() for number in numbers_in(value)),
    lambda value: all(abs(number) <= 10000 for number in numbers_in(value)),
    lambda value: len(sized(value)) > 0,
    lambda value: isinstance(value, tuple) and len({type(one) for one in value}) > 1 and len(value) == 2,
    lambda value: len({len(row) for row in matrix_rows(value)}) == 1,
    lambda value: all(matrix_rows(value)),
)
STRICT: tuple[Callable[[Datum], bool], ...] = (
    lambda value: all(abs(number) <= 100 for number in numbers_in(value)),
    lambda value: all(number in (0, 1) for number in numbers_in(value)),
    lambda value: len(sized(value)) > 1,
    lambda value: len(sized(value)) == 1,
    lambda value: len(sized(value)) > 3 and sized(value) == sorted(sized(value), key=order),
    lambda value: len(sized(value)) > 3 and len({repr(one) for one in sized(value)}) == len(sized(value)),
    lambda value: all(len(row) == 2 for row in matrix_rows(value)),
    lambda value: all(len(row) == 3 for row in matrix_rows(value)),
    lambda value: all(len(row) == len(sized(value)) for row in matrix_rows(value)),
)
"""Properties that known calls may have by chance: dropped if they leave too few inputs."""
PAIR: tuple[Callable[[Datum, Datum], bool], ...] = (
    lambda one, other: len(sized(one)) == len(sized(other)),
    lambda one, other: is_number(one) and one == len(sized(other)),
    lambda one, other: is_number(one) and 0 <= int(str(one)) < len(sized(other)),
    lambda one, other: is_number(one) and 0 < int(str(one)) <= len(sized(other)),
    lambda one, other: is_number(one) and is_number(other) and float(str(one)) < float(str(other)),
    lambda one, other: isinstance(one, str) and len(one) == 1 and isinstance(other, str) and one in other,
)


def is_number(value: Datum) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def order(value: Datum) -> tuple[str, Datum]:
    return (type(value).__name__ if not is_number(value) else "number", value)


def varied(arguments: Arguments, known: Sequence[Arguments], chance: random.Random) -> Arguments:
    """Change one or more arguments to values of the same type, or mix arguments of different calls."""
    mixed = [
        chance.choice(known)[place] if chance.random() < 0.2 else one for place, one in enumerate(arguments)
    ]
    places = [place for place in range(len(mixed)) if chance.random() < 0.6] or [chance.randrange(len(mixed))]
    for place in places:
        for _ in range(chance.choice((1, 1, 2, 3))):
            mixed[place] = changed(mixed[place], chance)
    return fitted(tuple(mixed), known, chance)


def fitted(arguments: Arguments, known: Sequence[Arguments], chance: random.Random) -> Arguments:
    """Restore equal lengths between arguments that have equal lengths in every known call."""
    result = list(arguments)
    for place, value in enumerate(result):
        for other, sequence in enumerate(result):
            if place == other or not isinstance(sequence, list | tuple | str):
                continue
            size = len(sequence)
            if is_number(value) and all(
                holds(lambda one, p=place, o=other: PAIR[1](one[p], one[o]), one) for one in known
            ):
                result[place] = size
            both = isinstance(value, list | tuple) and isinstance(sequence, list | tuple) and place > other
            if both and all(
                holds(lambda one, p=place, o=other: PAIR[0](one[p], one[o]), one) for one in known
            ):
                result[place] = resized(value, size, chance)
    return tuple(result)


def resized(value: Datum, size: int, chance: random.Random) -> Datum:
    assert isinstance(value, list | tuple)
    items = [*value]
    while items and len(items) < size:
        items.append(changed(chance.choice(items), chance))
    return type(value)(items[:size])


def changed(value: Datum, chance: random.Random) -> Datum:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float | complex):
        return changed_number(value, chance)
    if isinstance(value, str):
        return changed_text(value, chance)
    if isinstance(value, dict):
        return changed_dict(value, chance)
    if isinstance(value, list | tuple | set | frozenset):
        return changed_container(value, chance)
    return value


def changed_number(value: complex, chance: random.Random) -> Datum:
    if isinstance(value, int):
        near, around = chance.randint(-5, 5), chance.randint(1, max(10, 2 * abs(value)))
        others = (
            value + 1,
            value - 1,
            value * 2,
            value // 2,
            -value,
            value + near,
            chance.randint(0, 20),
            around,
        )
        return chance.choice(others)
    if isinstance(value, float):
        return chance.choice((value + 1, value / 2, -value, value * 3, round(chance.uniform(0, 10), 2)))
    return complex(value.real + chance.randint(-2, 2), value.imag + chance.randint(-2, 2))


def changed_container(
    value: list[Datum] | tuple[Datum, ...] | set[Datum] | frozenset[Datum], chance: random.Random
) -> Datum:
    if isinstance(value, list | tuple):
        items = changed_items([*value], chance)
        return items if isinstance(value, list) else tuple(items)
    items = hashable(changed_items(sorted(value, key=repr), chance))
    return set(items) if isinstance(value, set) else frozenset(items)


def hashable(items: Sequence[Datum]) -> list[Datum]:
    return [one for one in items if not isinstance(one, list | set | dict)]


def changed_text(value: str, chance: random.Random) -> str:
    if not value:
        return chance.choice(CHARACTERS)
    place = chance.randrange(len(value))
    words = value.split(" ")
    return chance.choice(
        (
            value[:place] + value[place + 1 :],
            value[:place] + value[place] + value[place:],
            value[:place] + chance.choice(value + CHARACTERS) + value[place + 1 :],
            value[:place] + chance.choice(value) + value[place:],
            value[:place] + value[place].swapcase() + value[place + 1 :],
            value[::-1],
            value[: place + 1],
            value[place:],
            value + value[:place],
            "".join(chance.sample(value, len(value))),
            " ".join(chance.sample(words, len(words))),
            re.sub(r"\d", lambda _: str(chance.randint(0, 9)), value),
        )
    )


def changed_items(items: list[Datum], chance: random.Random) -> list[Datum]:
    if not items:
        return items
    place = chance.randrange(len(items))
    one = items[place]
    before, after = items[:place], items[place + 1 :]
    ways = (
        lambda: [*before, *after],
        lambda: [*before, one, one, *after],
        lambda: items[::-1],
        lambda: chance.sample(items, len(items)),
        lambda: items[: place + 1],
        lambda: [*items, changed(one, chance)],
        lambda: [changed(each, chance) if chance.random() < 0.5 else each for each in items],
        lambda: [*before, changed(one, chance), *after],
        lambda: [*before, changed(one, chance), *after],
    )
    return chance.choice(ways)()


def changed_dict(value: dict[Datum, Datum], chance: random.Random) -> dict[Datum, Datum]:
    if not value:
        return value
    items = sorted(value.items(), key=repr)
    place = chance.randrange(len(items))
    key, inner = items[place]
    match chance.randrange(3):
        case 0:
            del items[place]
        case 1:
            items[place] = (key, changed(inner, chance))
        case _:
            new = changed(key, chance)
            items[place] = (new if isinstance(new, str | int | float | tuple) else key, inner)
    return dict(items)


def edges(known: Sequence[Arguments], chance: random.Random) -> Iterator[Arguments]:
    """Edge cases: the special values of each argument's type, one argument at a time."""
    for place in range(len(known[0])):
        base = chance.choice(known)
        for value in edge_values(base[place]):
            yield (*base[:place], value, *base[place + 1 :])


def edge_values(value: Datum) -> Iterator[Datum]:
    yield from EDGES.get(type(value), ())
    if isinstance(value, int) and not isinstance(value, bool):
        yield from (-value, value + 1, value - 1, value * 10)
    if isinstance(value, str):
        yield from (value.upper(), value.lower(), value * 2, f" {value} ")
    if isinstance(value, list | tuple) and value:
        kind = type(value)
        yield from (kind(value[:1]), kind([*value, *value]), kind([value[0]] * 3))
        for inner in edge_values(value[0]):
            yield kind([inner, *value[1:]])


def seeds_from_calls(calls: Sequence[str], function: str) -> list[list[Datum]]:
    """The literal arguments of calls of this function, for the most common number of arguments."""
    found = [literal_arguments(call) for call in calls if call.startswith(f"{function}(")]
    known = [one for one in found if one is not None]
    if not known:
        return []
    sizes = [len(one) for one in known]
    arity = max(sizes, key=sizes.count)
    return [one for one in known if len(one) == arity]


def seeds_from_signature(source: str, function: str, count: int = 3) -> list[list[Datum]]:
    """Sample arguments for a function by its annotations; integers without annotations."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function]
    if not found:
        return []
    names = found[-1].args.args
    needed = names[: len(names) - len(found[-1].args.defaults)]
    return [
        [sample_value(one.annotation, number) for one in needed if one.arg != "self"]
        for number in range(count)
    ]


def sample_value(annotation: ast.expr | None, number: int) -> Datum:
    """The `number`-th value of an annotated type."""
    text = ast.unparse(annotation) if annotation else "int"
    base, _, inner = text.partition("[")
    name = base.rpartition(".")[2].lower()
    first = re.split(r"[,\]|]", inner)[0].strip().lower()
    if name in ("optional", "union"):
        return sample_value(ast.parse(inner[:-1].split(",")[0], mode="eval").body, number)
    name = name.split("|")[0].strip()
    name = {"sequence": "list", "iterable": "list", "any": "int", "number": "int"}.get(name, name)
    values = SAMPLES.get(name, SAMPLES["int"])
    if name in ("list", "tuple", "set") and first in ("str", "float", "bool"):
        build: dict[str, type] = {"list": list, "tuple": tuple, "set": set}
        return build[name](SAMPLES[first])
    if name == "list" and first.startswith("list"):
        nested: list[Datum] = [[1, 2], [3, 4]]
        return nested[: number + 1]
    return values[number % len(values)]
