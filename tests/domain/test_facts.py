"""Facts at their limits: how many there may be, and how long one may be."""

import pytest

from septet.domain.facts import MAX_FACT_LENGTH, MAX_FACTS, FactsChange, apply_change, change_in, tidy


@pytest.mark.parametrize(("count", "dropped"), [(MAX_FACTS - 1, 0), (MAX_FACTS, 0), (MAX_FACTS + 1, 1)])
def test_as_many_facts_as_there_may_be_are_all_kept_and_one_more_costs_the_oldest(
    count: int, dropped: int
) -> None:
    added = tuple(f"fact {number}" for number in range(count))
    assert apply_change((), FactsChange(add=added)) == added[dropped:]


def test_a_fact_is_whole_up_to_its_longest_and_then_cut() -> None:
    longest = "x" * MAX_FACT_LENGTH
    assert tidy(longest) == longest
    assert tidy(f"{longest}y") == longest
    assert change_in(f"remember: {longest}y") == FactsChange(add=(longest,))
