"""What code defines is told in a line each."""

from hypothesis import given
from hypothesis import strategies as st

from septet.ways.pair.briefing import merge_definitions

FIRST = '''
import os
RATE = 0.5
def add(a: int, b=2, *rest) -> int:
    """The sum.

    More about it."""
    return a + b
class Clock:
    def hands(self): ...
    async def wait(self): ...
'''


def test_functions_classes_and_constants_are_named() -> None:
    assert merge_definitions([FIRST]) == [
        "RATE = 0.5",
        "def add(a: int, b=2, *rest) -> int: The sum.",
        "class Clock: hands, wait",
    ]


def test_the_newest_of_a_name_counts_and_what_does_not_parse_is_passed_over() -> None:
    assert merge_definitions(["x = 1\ny: int = 2", "def (", "x = 3"]) == ["y: int = 2", "x = 3"]


@given(st.lists(st.text()))
def test_any_text_gets_an_answer(sources: list[str]) -> None:
    assert all(len(line) <= 160 for line in merge_definitions(sources))
