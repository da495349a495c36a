"""Finds the examples that a goal states: asserts, doctests, `f(2) -> 4`, "f(2) returns 4". Pure.

What the goal states is trusted; nothing here guesses. An example is a call with literal arguments and a statement
about its result.
"""

import ast
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from septet.common.values import Value
from septet.team.imports import MODULES

Scalar: TypeAlias = bool | int | float | complex | str | bytes | None
Datum: TypeAlias = (
    "Scalar | list[Datum] | tuple[Datum, ...] | set[Datum] | frozenset[Datum] | dict[Datum, Datum]"
)
"""The types of values that a literal can have."""
BUILDERS: dict[str, type] = {"set": set, "tuple": tuple, "list": list, "dict": dict, "frozenset": frozenset}
KNOWN_CALLS = frozenset(
    """abs all any bool complex dict float frozenset int isclose isinstance len list max min range repr round set
    sorted str sum tuple type""".split()  # a list reads worse
)
"""Builtin functions: a goal does not ask for one of these."""

RELATION = re.compile(
    r"""\s*`?\s*(?:,?\s*(?:the\s+)?(?:result|output|answer|value)\s+(?:is|would\s+be|should\s+be|must\s+be)
    |(?:should|must|will|would|shall)\s+(?:return|be|give|equal|yield|output|produce|evaluate\s+to)
    |(?:returns?|gives?|yields?|equals?|produces?|outputs?|evaluates?\s+to|results?\s+in|is\s+equal\s+to|is)
    |[=!]?==?(?!=)>?|=>|->|-->|➞|→|⇒|⟹|\#\s*(?:=>|->|→|returns?|==)?|//|:)\s*:?\s*
    (?:the\s+)?(?:(?:list|string|tuple|set|dict|dictionary|value|number|integer|result|array)\s+)?`?\s*""",
    re.VERBOSE | re.IGNORECASE,
)
RAISES = re.compile(
    r"\s*`?\s*(?:should\s+|must\s+|will\s+)?(?:raises?|throws?)\s+(?:an?\s+)?`?([A-Z]\w*(?:Error|Exception))"
)
CALL_START = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\(")
INPUT_START = re.compile(r"\b(?:for|if|when|given|input:?)\s+`?(?=\w+\s*=)", re.IGNORECASE)
OUTPUT = re.compile(
    r"\s*[,:;.]?\s*`?\s*(?:then\s+)?(?:the\s+)?(?:output|result|answer|function|you|it)?\s*"
    r"(?:should\s+|must\s+|would\s+|will\s+)?(?:returns?|be|is|gives?|outputs?)?\s*:?\s*`?\s*(?:the\s+)?",
    re.IGNORECASE,
)
ASSIGNED = re.compile(r"(\w+)\s*=\s*")
SEPARATOR = re.compile(r"\s*(?:,|and|,\s*and)\s*(?=\w+\s*=)")
CONTINUATION = re.compile(r"\s*(?:[*+/%]\s*\w|-\s*(?:\d|\w\b)|,\s*[-\d'\"\[({])")
"""Text after a literal that makes it part of a longer expression: `4 * x`, `1, 2`."""
MAX_LITERAL_LENGTH = 2000
"""Characters of one literal."""


class StatedExample(Value):
    """A call with a statement about it: `left` equals `right`, or `holds` is true, or the call raises `raises`."""

    call: str
    left: str = ""
    right: str = ""
    holds: str = ""
    raises: str = ""

    @property
    def function(self) -> str:
        return self.call.partition("(")[0]

    def __str__(self) -> str:
        if self.raises:
            return f"{self.call} raises {self.raises}"
        return self.holds or f"{self.left} == {self.right}"


def stated_examples(goal: str) -> list[StatedExample]:
    """All examples that the goal states, without duplicates, the most reliable forms first."""
    found = [*from_asserts(goal), *from_doctests(goal), *from_prose(goal), *from_assignments(goal)]
    unique: dict[str, StatedExample] = {}
    for one in found:
        unique.setdefault(same_call(one.call), one)
    return list(unique.values())


def seen_as_stated(call: str, examples: Sequence[StatedExample]) -> str:
    """The call within what all examples compare: `set(f(1))`, or `bool(f(1))` where they only say that it holds."""
    seen = {view_of(one) for one in examples if not one.raises}
    view = seen.pop() if len(seen) == 1 else "\0"
    return view.replace("\0", call) if view.count("\0") == 1 else call


def view_of(example: StatedExample) -> str:
    """What an example compares, with a null character for the call."""
    if example.left:
        return example.left.replace(example.call, "\0")
    return "bool(\0)" if example.holds in (example.call, f"not {example.call}") else "\0"


def condition_of(example: StatedExample) -> str:
    """The condition of an example as an expression; a float is compared with a tolerance."""
    body = expression(example.right) if example.right else None
    if isinstance(body, ast.Constant) and isinstance(body.value, float):
        return f"abs({example.left} - {example.right}) <= 1e-6 * max(1, abs({example.right}))"
    return str(example)


def same_call(call: str) -> str:
    return ast.unparse(ast.parse(call, mode="eval"))


def wanted_names(goal: str) -> list[str]:
    """The functions that the goal asks for: those that its examples call, else the last that it defines."""
    called = dict.fromkeys(one.function for one in stated_examples(goal) if "." not in one.function)
    return list(called) or defined_functions(goal)


def defined_functions(goal: str) -> list[str]:
    found = re.findall(r"^\s*(?:async\s+)?def\s+(\w+)\s*\(", goal, re.MULTILINE)
    return found[-1:]


def example_of(test: str) -> StatedExample | None:
    """Parse an example from a condition like `f(2) == 4`, `set(f(x)) == {1}`, `not f(3)`, `isclose(f(1), 0.5)`."""
    body = expression(test)
    if body is None:
        return None
    calls = [node for node in ast.walk(body) if is_subject(node)] or shadowed_builtin(body)
    if not calls or len({ast.unparse(call) for call in calls}) != 1:
        return None
    call = ast.unparse(calls[0])
    if isinstance(body, ast.Compare) and len(body.ops) == 1 and isinstance(body.ops[0], ast.Eq | ast.Is):
        left, right = body.left, body.comparators[0]
        if call not in ast.unparse(left):
            left, right = right, left
        if call not in ast.unparse(right):
            return (
                StatedExample(call=call, left=ast.unparse(left), right=ast.unparse(right))
                if is_self_contained(right)
                else None
            )
    return StatedExample(call=call, holds=ast.unparse(body))


def shadowed_builtin(body: ast.expr) -> list[ast.Call]:
    """The call in `sum(10, 15) == 6`: a goal may ask for a function with the name of a builtin."""
    left = body.left if isinstance(body, ast.Compare) else body
    named = isinstance(left, ast.Call) and isinstance(left.func, ast.Name)
    return [left] if isinstance(left, ast.Call) and named and all(map(is_self_contained, left.args)) else []


def is_subject(node: ast.AST) -> bool:
    """Whether the node calls something that is not a builtin, with self-contained arguments."""
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    if name.rpartition(".")[2] in KNOWN_CALLS or not isinstance(node.func, ast.Name | ast.Attribute):
        return False
    if isinstance(node.func, ast.Attribute) and (
        not isinstance(node.func.value, ast.Name) or node.func.value.id in MODULES
    ):
        return False
    return all(is_self_contained(one) for one in (*node.args, *(word.value for word in node.keywords)))


def is_self_contained(node: ast.AST) -> bool:
    """Whether the expression uses only literals and builtins, and no names that must be bound first."""
    bound = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    allowed = KNOWN_CALLS | MODULES | {"inf", "nan", "Counter", "Decimal", "Fraction"} | bound
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    return names <= allowed and not any(isinstance(one, ast.Lambda) for one in ast.walk(node))


def expression(text: str) -> ast.expr | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def from_asserts(goal: str) -> Iterator[StatedExample]:
    """Examples in `assert …` statements, which may span lines within brackets."""
    for match in re.finditer(r"(?:^|[\s`])assert\s+", goal):
        test = longest_prefix(goal[match.end() :], is_expression)
        found = example_of(assert_condition(test)) if test else None
        if found:
            yield found


def assert_condition(test: str) -> str:
    """The condition of an assert without its message."""
    body = expression(test)
    if isinstance(body, ast.Tuple) and body.elts:
        return ast.unparse(body.elts[0])
    return test


def from_doctests(goal: str) -> Iterator[StatedExample]:
    """Examples in doctests: `>>> f(2)` and the lines below it."""
    lines = goal.split("\n")
    for place, line in enumerate(lines):
        source = line.strip().removeprefix(">>>").strip()
        if not line.strip().startswith(">>>") or not source:
            continue
        rest = lines[place + 1 :]
        more = list(takewhile_prefix(rest, "..."))
        source = "\n".join([source, *(one.strip()[3:] for one in more)])
        shown = list(shown_lines(rest[len(more) :]))
        yield from from_session(source, "\n".join(shown))


def takewhile_prefix(lines: Sequence[str], prefix: str) -> Iterator[str]:
    for line in lines:
        if not line.strip().startswith(prefix):
            return
        yield line


def shown_lines(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        text = line.strip()
        if not text or text.startswith((">>>", '"""', "'''", "```")):
            return
        yield text


def from_session(source: str, shown: str) -> Iterator[StatedExample]:
    body = expression(source)
    if body is None or not shown:
        return
    if shown.startswith("Traceback"):
        error = re.search(r"^(\w+(?:Error|Exception))", shown.rpartition("\n")[2])
        if error and is_subject(body):
            yield StatedExample(call=ast.unparse(body), raises=error[1])
        return
    value = longest_prefix(shown, is_literal) or longest_prefix(shown.partition("\n")[0], is_literal)
    if value is None:
        return
    found = example_of(f"({source}) == ({value})")
    if found:
        yield found


def from_prose(goal: str) -> Iterator[StatedExample]:
    """Examples in prose: a call with literal arguments, a word or sign for equality, and a literal."""
    for match in CALL_START.finditer(goal):
        if match[1] in KNOWN_CALLS or is_read_elsewhere(goal, match.start()):
            continue
        end = closing_bracket(goal, match.end() - 1)
        call = expression(goal[match.start() : end]) if end else None
        if end is None or call is None or not is_subject(call):
            continue
        rest = goal[end : end + MAX_LITERAL_LENGTH]
        raised = RAISES.match(rest)
        if raised:
            yield StatedExample(call=ast.unparse(call), raises=raised[1])
            continue
        relation = RELATION.match(rest)
        value = literal_at(rest[relation.end() :]) if relation and "!=" not in relation[0] else None
        if value is not None:
            yield StatedExample(call=ast.unparse(call), left=ast.unparse(call), right=value)


def is_read_elsewhere(goal: str, start: int) -> bool:
    """Whether the call is in an assert or a doctest, which other functions read, or in a definition."""
    line = goal[goal.rfind("\n", 0, start) + 1 : start]
    return bool(re.search(r"\bassert\b|>>>|\bdef\s*$|\bclass\s*$", line))


def from_assignments(goal: str) -> Iterator[StatedExample]:
    """Examples like `Input: nums = [2, 7], target = 9` and `Output: [0, 1]`, if the goal defines one function."""
    names = defined_functions(goal)
    if len(names) != 1:
        return
    for match in INPUT_START.finditer(goal):
        values, place = given_values(goal, match.end())
        said = OUTPUT.match(goal, place)
        result = literal_at(goal[said.end() : said.end() + MAX_LITERAL_LENGTH]) if values and said else None
        if result is not None and said and said[0].strip(" ,.`:\n"):
            call = f"{names[0]}({', '.join(values)})"
            yield StatedExample(call=call, left=call, right=result)


def given_values(goal: str, place: int) -> tuple[list[str], int]:
    """The literals in `nums = [2, 7], target = 9`, and the position of their end."""
    values: list[str] = []
    while (pair := ASSIGNED.match(goal, place)) is not None:
        value = literal_at(goal[pair.end() : pair.end() + MAX_LITERAL_LENGTH], sentence=False)
        if value is None:
            break
        values.append(value)
        place = literal_end(goal, pair.end(), value)
        joint = SEPARATOR.match(goal, place)
        place = joint.end() if joint else place
    return values, place


def literal_end(goal: str, start: int, value: str) -> int:
    """The position in the goal where the literal with this value ends."""
    text = longest_prefix(
        goal[start : start + MAX_LITERAL_LENGTH],
        lambda one: is_literal(one) and canonical_expression(one) == value,
    )
    return start + len(text or "")


def literal_at(text: str, sentence: bool = True) -> str | None:
    """The literal at the start of a text in canonical form; a full stop at its end belongs to the sentence."""
    line = text.lstrip(" \t`")
    found = longest_prefix(line, is_literal)
    if found is None:
        return None
    if sentence and re.fullmatch(r"-?\d+\.", found):
        found = found[:-1]
    after = line[len(found) : len(found) + 1]
    if after.isalnum() or after == "_" or CONTINUATION.match(line, len(found)):
        return None
    return canonical_expression(found)


def canonical_expression(text: str) -> str:
    return ast.unparse(ast.parse(text.strip(), mode="eval"))


def is_expression(text: str) -> bool:
    return expression(text) is not None


def is_literal(text: str) -> bool:
    body = expression(text)
    bare = isinstance(body, ast.Tuple) and not text.lstrip().startswith("(")
    return body is not None and is_self_contained(body) and not bare and not isinstance(body, ast.Name)


def longest_prefix(text: str, accept: Callable[[str], bool]) -> str | None:
    """The longest accepted prefix that ends with a token, within its line or the lines that its brackets span."""
    best: str | None = None
    for end in ends_of(text[:MAX_LITERAL_LENGTH]):
        if accept(text[:end]):
            best = text[:end]
    return best


def ends_of(text: str) -> Iterator[int]:
    """The positions where a token may end, in the first line or until all brackets and quotes are closed."""
    for place, depth in scan_brackets(text):
        if depth < 0 or (depth == 0 and text[place - 1] == "\n"):
            yield place - 1
            return
        if depth == 0 and token_ends(text, place):
            yield place
    yield len(text)


def scan_brackets(text: str) -> Iterator[tuple[int, int]]:
    """The position after each character and the bracket depth there; a quoted text counts as one character."""
    depth, quote, place = 0, "", 0
    while place < len(text):
        char = text[place]
        place += 2 if quote and char == "\\" else 1
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        else:
            depth += (char in "([{") - (char in ")]}")
        if not quote:
            yield place, depth


def token_ends(text: str, place: int) -> bool:
    after = text[place : place + 1]
    before = text[place - 1]
    return not (before.isalnum() and (after.isalnum() or after == "_")) and not before.isspace()


def closing_bracket(text: str, opening: int) -> int | None:
    """The position after the bracket that closes the one at `opening`."""
    places = scan_brackets(text[opening : opening + MAX_LITERAL_LENGTH])
    return next((opening + place for place, depth in places if depth == 0), None)


def literal_arguments(call: str) -> list[Datum] | None:
    """The values of a call's positional arguments; None if one is not a plain literal."""
    body = expression(call)
    if not isinstance(body, ast.Call) or body.keywords:
        return None
    try:
        return [value_of(one) for one in body.args]
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def value_of(node: ast.expr) -> Datum:
    """The value of a literal, also of `set([1, 2])`, `tuple([1])` and the like."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BUILDERS:
        return BUILDERS[node.func.id](*[value_of(one) for one in node.args])
    return ast.literal_eval(node)
