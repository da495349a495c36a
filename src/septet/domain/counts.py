"""How many of something, in words: one answer, two answers."""


def counted(number: int, one: str, many: str = "") -> str:
    """The number with its noun; `many` is for nouns that do more than take an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
