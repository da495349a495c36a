"""A trail only grows, and older views stay as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.domain.state import Trail

NUMBERS = st.lists(st.integers())


def grown(numbers: list[int], trail: Trail[int] | None = None) -> Trail[int]:
    trail = Trail[int]() if trail is None else trail
    for number in numbers:
        trail = trail.plus(number)
    return trail


@given(NUMBERS)
def test_it_reads_like_a_list(numbers: list[int]) -> None:
    trail = grown(numbers)

    assert list(trail) == numbers
    assert len(trail) == len(numbers)
    assert [trail[place] for place in range(-len(numbers), len(numbers))] == numbers * 2
    assert trail == Trail(numbers)
    assert trail != Trail([*numbers, 0])


@given(NUMBERS, st.slices(20))
def test_it_is_sliced_like_a_list(numbers: list[int], part: slice) -> None:
    assert grown(numbers)[part] == numbers[part]


@given(NUMBERS, NUMBERS, NUMBERS)
def test_older_views_and_forks_do_not_see_each_other(
    begin: list[int], ours: list[int], theirs: list[int]
) -> None:
    shared = grown(begin)
    one = grown(ours, shared)
    other = grown(theirs, shared)

    assert list(shared) == begin
    assert list(one) == begin + ours
    assert list(other) == begin + theirs


@given(NUMBERS)
def test_an_older_view_ends_where_it_ended(numbers: list[int]) -> None:
    trail = grown(numbers)
    trail.plus(1)

    for place in (len(numbers), -len(numbers) - 1):
        with pytest.raises(IndexError):
            trail[place]


def test_what_it_was_made_from_may_change_later() -> None:
    numbers = [1, 2]
    trail = Trail(numbers)
    numbers.append(3)

    assert list(trail) == [1, 2]


def test_growing_copies_nothing() -> None:
    """All views of one line of growth share one list: the cost of the next item does not depend on length."""
    views = [Trail[int]()]
    for number in range(100):
        views.append(views[-1].plus(number))

    lists = {id(view._items) for view in views}  # pyright: ignore[reportPrivateUsage]  # the claim is about it

    assert len(lists) == 1
