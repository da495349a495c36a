"""The report of the run that looks for special cases: what tests ask, and the code that is there for that only."""

import ast

from septet.common.values import Value
from septet.domain.events import SpecialCase


class Call(Value):
    """A call of a function of the program, its arguments as literals, and the tests that make it."""

    module: str
    name: str
    arguments: tuple[str, ...]
    """Of a method, the first is its object: its attributes as a dict."""
    tests: tuple[str, ...] = ()

    @property
    def is_method(self) -> bool:
        return "." in self.name

    @property
    def given(self) -> tuple[str, ...]:
        """The arguments without the object of a method."""
        return self.arguments[1:] if self.is_method else self.arguments

    @property
    def inputs(self) -> list[object]:
        """The numbers and texts that are given, also by the attributes of a method's object."""
        values = attribute_values(self.arguments[0]) if self.is_method else []
        return [one for text in (*values, *self.given) for one in leaves(text)]

    @property
    def text(self) -> str:
        return f"{self.name}({', '.join(self.given)})"


class TestedCase(Value):
    """A special case, and the tests or the example that it is made for."""

    case: SpecialCase
    tests: tuple[str, ...]


class SpecialCases(Value):
    """The output of the run that looks for special cases: what the tests ask, and what is there for them only."""

    calls: tuple[Call, ...] = ()
    cases: tuple[TestedCase, ...] = ()
    questions: tuple[Call, ...] = ()
    """Calls of which somebody should say what the goal wants, if nothing is held back."""
    lost: tuple[str, ...] = ()
    """Tests that passed over the program, and fail over the same program with switches."""
    asked: bool = True
    """Whether the program could be asked at all."""
    untried: int = 0
    """Places that nobody has taken away: the checks are short, and this may not take much longer."""


def attribute_values(text: str) -> list[str]:
    """The values of a dict that is written as a literal."""
    tree = ast.parse(text, mode="eval").body
    return [ast.unparse(one) for one in tree.values] if isinstance(tree, ast.Dict) else []


def leaves(text: str) -> list[object]:
    """The numbers and texts of a literal."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return [text]
    return [one.value for one in ast.walk(tree) if isinstance(one, ast.Constant)]
