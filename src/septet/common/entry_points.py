"""What installed packages bring along, by the group of their entry points."""

from collections.abc import Iterator

from septet.errors import BadConfig


def plugins(group: str) -> Iterator[object]:
    """Everything of that group; a package that cannot be loaded is named."""
    from importlib.metadata import entry_points  # 20 ms, and most commands need none

    for point in entry_points(group=group):
        try:
            yield point.load()
        except Exception as error:  # a person's own code: whatever it raises
            cause = f"'{point.name}' ({point.value}) of an installed package cannot be loaded"
            remedy = f"mend or uninstall it ({type(error).__name__}: {error})"
            raise BadConfig(cause, remedy) from error
