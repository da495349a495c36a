"""Names of chats: telling, safe as folder names, found by prefix."""

import re
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.chat.names import CHAT_NAME, alternative_names, chat_title, checked_name, find_name, new_names
from septet.errors import BadUsage


@given(st.text())
def test_any_goal_gives_a_good_name(goal: str) -> None:
    assert all(CHAT_NAME.fullmatch(name) for name in islice(new_names(goal), 60))


def test_a_name_tells_what_the_goal_is() -> None:
    name = next(new_names("Make me a python app: an analog clock!"))
    assert name.startswith("analog-clock-")
    assert len(name) == len("analog-clock-abc")
    assert next(new_names("a clock\n\nSaid before, in the conversation:\nhello")).startswith("clock-")


@pytest.mark.parametrize(
    ("goal", "title"),
    [
        ("Make me a python app: an analog clock!", "Python app: an analog clock"),
        ("count the words. Then sort them.", "Count the words"),
        ("\n  please write the parser\nwith tests", "Parser"),
        ("make it", "Make it"),
        ("word " * 30, "Word" + " word" * 11 + " …"),
        ("x" * 99, "X" + "x" * 59 + " …"),
        ("", ""),
    ],
)
def test_a_title_is_the_goal_in_a_few_words(goal: str, title: str) -> None:
    assert chat_title(goal) == title


def test_two_chats_of_one_goal_differ() -> None:
    assert len(set(islice(new_names("clock"), 50))) > 1


def test_a_name_that_is_taken_is_followed_by_longer_ones_of_the_same_words() -> None:
    *_, late = islice(alternative_names("clock-k3f"), 20)
    assert re.fullmatch("clock-[a-z0-9]{7}", late)
    assert re.fullmatch("clock-[a-z0-9]{3}", next(alternative_names(late)))


@pytest.mark.parametrize("name", ["", "../x", "a/b", "A", "-a", "x" * 64, "a b", "a\n"])
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(BadUsage, match="not a valid name"):
        checked_name(name)


def test_a_prefix_is_enough_when_it_is_clear() -> None:
    names = ["clock-abc", "clock-abd", "bars-xyz"]
    assert find_name("bars", names) == "bars-xyz"
    assert find_name("clock-abd", names) == "clock-abd"
    with pytest.raises(BadUsage, match="matches 2 chats"):
        find_name("clock", names)
    with pytest.raises(BadUsage, match="did you mean 'bars-xyz'"):
        find_name("bras-xyz", names)
