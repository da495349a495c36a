"""More calls like the plan's examples: programs that agree on them were probably meant the same way. Pure."""

import ast
import re
import shlex
from collections.abc import Iterator, Sequence

from septet.domain.plans import CommandSucceeds, Plan

EXAMPLE = re.compile(r"^from \w+ import \*; assert (?P<comparison>.+)$", re.DOTALL)
MOST = 40

LONGEST_OUTCOME = 120


def calls_like(plan: Plan | None) -> list[str]:
    """The calls of the plan's examples and variations of them, each a Python expression."""
    found: dict[str, None] = {}
    for call in example_calls(plan):
        found.setdefault(ast.unparse(call))
        for varied in variations(call):
            found.setdefault(varied)
    return list(found)[:MOST]


def example_calls(plan: Plan | None) -> Iterator[ast.Call]:
    for item in plan.items if plan else ():
        if not isinstance(item.check, CommandSucceeds):
            continue
        try:
            words = shlex.split(item.check.command)
            example = EXAMPLE.match(words[2]) if len(words) == 3 and words[:2] == ["python", "-c"] else None
            body = ast.parse(example["comparison"], mode="eval").body if example else None
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # a person may have written the plan
            continue
        if isinstance(body, ast.Compare) and isinstance(body.left, ast.Call):
            yield body.left


def variations(call: ast.Call) -> Iterator[str]:
    """One argument at a time becomes something else of its kind."""
    for place, argument in enumerate(call.args):
        try:
            value: object = ast.literal_eval(argument)
        except ValueError:
            continue
        for other in similar_values(value):
            arguments = [*call.args]
            arguments[place] = ast.Constant(0)
            texts = [repr(other) if at == place else ast.unparse(one) for at, one in enumerate(arguments)]
            yield f"{ast.unparse(call.func)}({', '.join(texts)})"


def similar_values(value: object) -> Sequence[object]:
    """Values like this one that a program should handle too."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [0, 1, value + 1, value + 2, 2 * value + 1, 7 * value + 3, value * value + 8]
    if isinstance(value, str):
        return [
            value.title(),
            value.upper(),
            f"{value} {value}",
            value[::-1],
            f"{value}s {value.title()}",
            "",
        ]
    if isinstance(value, list):
        items: list[object] = [*value]
        return [items + items, items[::-1], [items], [items, items], []]
    return []


def driver(modules: Sequence[str], calls: Sequence[str]) -> str:
    """A program that tells what each module makes of each call: a JSON list of lists, null for an error."""
    return f"""\
import contextlib, importlib, io, json

def outcome(space, call):
    try:
        return repr(eval(call, dict(space)))[:2000]
    except Exception:
        return None

told = []
for name in {list(modules)!r}:
    with contextlib.redirect_stdout(io.StringIO()):
        space = vars(importlib.import_module(name))
        told.append([outcome(space, call) for call in {list(calls)!r}])
print(json.dumps(told))
"""


def alike(one: Sequence[str | None], other: Sequence[str | None]) -> int:
    """On how many calls two programs agree; none at all where they differ on one that both can do."""
    both = [
        (left, right)
        for left, right in zip(one, other, strict=True)
        if left is not None and right is not None
    ]
    return len(both) if all(left == right for left, right in both) else 0


def first_disagreement(calls: Sequence[str], outcomes: Sequence[Sequence[str | None]]) -> str:
    """The first call on which the first program and another one disagree, in words."""
    first, *rest = outcomes or [[]]
    for place, (call, own) in enumerate(zip(calls, first, strict=False)):
        others = [told for one in rest if (told := one[place]) is not None and told != own]
        if own is not None and others:
            return f"{call} gives {own[:LONGEST_OUTCOME]} here and {others[0][:LONGEST_OUTCOME]} elsewhere"
    return ""
