"""Loads plugins of installed packages by the group of their entry points."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from septet.errors import BadConfig

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def plugins(group: str) -> Iterator[object]:
    """All plugins of a group. Raises BadConfig, naming the entry point, if one cannot be loaded."""
    from importlib.metadata import entry_points  # 20 ms, and most commands need none

    for point in entry_points(group=group):
        yield load(point)


def plugin(group: str, name: str) -> object | None:
    """The plugin of that name; None if no installed package has it."""
    from importlib.metadata import entry_points

    return next((load(point) for point in entry_points(group=group, name=name)), None)


def load(point: "EntryPoint") -> object:
    try:
        return point.load()
    except Exception as error:  # foreign code may raise anything
        cause = f"'{point.name}' ({point.value}) of an installed package cannot be loaded"
        remedy = f"fix or uninstall it ({type(error).__name__}: {error})"
        raise BadConfig(cause, remedy) from error
