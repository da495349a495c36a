"""Checks of examples: a driver calls the program in the sandbox, and the result is compared outside. Pure.

The driver prints plain values as Python literals, so that no `__eq__`, `__repr__` or patched `assert` of the program
can influence the comparison, and the expected value is not in the sandbox.
"""

import ast
import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import cast

from septet.common.text import cut_middle
from septet.domain.plans import RAISES

OUTCOME_MARK = "septet-example:"
MAX_SHOWN_OUTCOME = 120


DRIVER = """\
import importlib, sys

def spelled(value, depth=0):
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes, complex):
        return kind.__repr__(value)
    if kind is float:
        return "1e999" if value == float("inf") else "-1e999" if value == -float("inf") else float.__repr__(value)
    if depth < 50 and kind in (list, tuple, set, frozenset, dict):
        items = list(kind.__iter__(value))
        if kind is dict:
            pairs = [spelled(key, depth + 1) + ": " + spelled(dict.__getitem__(value, key), depth + 1) for key in items]
            return "{" + ", ".join(pairs) + "}"
        inner = ", ".join(spelled(item, depth + 1) for item in items)
        if kind is list:
            return "[" + inner + "]"
        if kind is tuple:
            return "(" + inner + ("," if len(items) == 1 else "") + ")"
        return "{" + inner + "}" if items else "set()"
    raise TypeError("returns a value of the class " + kind.__name__ + ", which no literal can spell")

def find(path):
    for length in range(len(path) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(path[:length]))
        except ModuleNotFoundError as error:
            if error.name and ".".join(path[:length]).startswith(error.name) and length > 1:
                continue
            raise
        for name in path[length:]:
            found = getattr(found, name)
        return found

write = sys.__stdout__.buffer.write
try:
    outcome = "=" + spelled(find(PATH)(*ARGUMENTS, **NAMED))
except Exception as error:
    outcome = "!" + type(error).__name__ + " " + " ".join(str(error).split())[:200]
sys.stdout.flush()
write(("\\n" + MARK + outcome.replace("\\n", "\\\\n") + "\\n").encode("utf-8", "backslashreplace"))
sys.__stdout__.flush()
"""
"""The source of the driver: makes a call and prints its outcome on a separate line."""


def example_driver(call: str) -> str:
    """The source of a program that makes the call and prints its outcome on a separate line."""
    tree = ast.parse(call, mode="eval").body
    assert isinstance(tree, ast.Call), "the plan parser accepts only calls"
    named = ", ".join(f"{one.arg!r}: {ast.unparse(one.value)}" for one in tree.keywords)
    head = [
        f"PATH = {ast.unparse(tree.func).split('.')!r}",
        f"ARGUMENTS = {ast.unparse(ast.Tuple([*tree.args], ast.Load()))}",
        f"NAMED = {{{named}}}",
        f"MARK = {OUTCOME_MARK!r}",
    ]
    return "\n".join([*head, DRIVER])


def call_outcome(stdout: str) -> str:
    """Find the outcome in the driver's output: `=LITERAL`, `!ERROR message`, or empty if the call never returned."""
    lines = [line for line in stdout.splitlines() if line.startswith(OUTCOME_MARK)]
    return lines[-1].removeprefix(OUTCOME_MARK) if lines else ""


def is_as_wanted(outcome: str, value: str) -> bool:
    if error := RAISES.fullmatch(value):
        return outcome.startswith("!") and outcome[1:].partition(" ")[0] == error["name"]
    if not outcome.startswith("="):
        return False
    try:
        return values_match(ast.literal_eval(outcome[1:]), ast.literal_eval(value))
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return False


def values_match(found: object, wanted: object) -> bool:
    """Whether values are equal as people mean it: 5 is 5.0, 0.1 + 0.2 is 0.3, but True is not 1, nor a list a tuple."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, int | float) and isinstance(wanted, int | float):
        return found == wanted or math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-12)
    if type(found) is not type(wanted):
        return False
    if isinstance(found, list | tuple):
        pairs = list(
            zip_longest(cast(Sequence[object], found), cast(Sequence[object], wanted), fillvalue=...)
        )
        return all(values_match(one, other) for one, other in pairs)
    if isinstance(found, dict):
        left, right = cast(Mapping[object, object], found), cast(Mapping[object, object], wanted)
        return left.keys() == right.keys() and all(values_match(left[key], right[key]) for key in left)
    return found == wanted


def outcome_text(outcome: str) -> str:
    if not outcome:
        return "does not return"
    words = cut_middle(outcome[1:], MAX_SHOWN_OUTCOME)
    return f"gives {words}" if outcome.startswith("=") else f"raises {words}"
