"""Names of chats: telling, safe as folder names, found by prefix."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.chat.names import GOOD, checked_name, find_name, new_name
from septet.errors import BadUsage


@given(st.text())
def test_any_goal_gives_a_good_name(goal: str) -> None:
    assert GOOD.fullmatch(new_name(goal))


def test_a_name_tells_what_the_goal_is() -> None:
    assert new_name("Make me a python app: an analog clock!").startswith("analog-clock-")


def test_two_chats_of_one_goal_differ() -> None:
    assert len({new_name("clock") for _ in range(50)}) > 1


@pytest.mark.parametrize("name", ["", "../x", "a/b", "A", "-a", "x" * 64, "a b", "a\n"])
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(BadUsage, match="no good name"):
        checked_name(name)


def test_a_prefix_is_enough_when_it_is_clear() -> None:
    names = ["clock-abc", "clock-abd", "bars-xyz"]
    assert find_name("bars", names) == "bars-xyz"
    assert find_name("clock-abd", names) == "clock-abd"
    with pytest.raises(BadUsage, match="fits 2 chats"):
        find_name("clock", names)
    with pytest.raises(BadUsage, match="did you mean 'bars-xyz'"):
        find_name("bras-xyz", names)
