"""How many of something and which, in words: one answer, two answers; a, b and c."""

from collections.abc import Sequence


def counted(number: int, one: str, many: str = "") -> str:
    """The number with its noun; `many` is for nouns that do more than take an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def listed(names: Sequence[str], last: str = "and") -> str:
    """The names as a sentence has them."""
    *others, final = names or [""]
    return f"{', '.join(others)} {last} {final}" if others else final
