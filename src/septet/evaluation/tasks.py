"""A task with hidden tests."""

from collections.abc import Mapping

from septet.common.values import Value

MODULE = "solution"
"""What hidden tests import, where a task is about a function: the file that defines it is found."""


class EvalTask(Value):
    """One task. `tests` are hidden from whoever solves it; `entry` is the function that it is about."""

    id: str
    goal: str
    tests: Mapping[str, str]
    files: Mapping[str, str] = {}
    entry: str = ""
    solution: str = ""
    """A right program, where one is known: nobody is shown it."""
    targets: tuple[str, ...] = ()
    """The tests that decide; without any, all of them."""
