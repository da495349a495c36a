"""Names of chats: telling, safe as folder names, found by prefix."""

import re
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.chat.names import (
    CHAT_NAME,
    alternative_names,
    chat_name_from_title,
    chat_title,
    checked_name,
    find_name,
    new_names,
)
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


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Random MIDI", "random-midi"),
        ("random-midi", "random-midi"),
        ("Große Uhr (blau)!", "grosse-uhr-blau"),
        ("X" * 70, "x" * 63),
        ("X" * 62 + " y", "x" * 62),
        ("时钟", "project-0f58fd2a"),
    ],
)
def test_a_title_always_gives_the_same_name(title: str, name: str) -> None:
    assert chat_name_from_title(title) == name


def test_a_title_that_looks_like_a_path_is_refused() -> None:
    with pytest.raises(BadUsage, match="not a valid name"):
        chat_name_from_title("../x")


@pytest.mark.parametrize(("count", "end"), [(4, ""), (5, ", …")])
def test_of_many_chats_with_a_prefix_some_are_named(count: int, end: str) -> None:
    names = [f"clock-{number}" for number in range(count)]
    with pytest.raises(BadUsage) as refused:
        find_name("clock", names)
    assert refused.value.cause == f"'clock' matches {count} chats ({', '.join(names[:4])}{end})"
    with pytest.raises(BadUsage) as refused:
        find_name("clock", names[:2], whole=True)
    assert refused.value.remedy == "this needs the whole name, clock-0, clock-1"
    with pytest.raises(BadUsage) as refused:
        find_name(" ", names)
    assert refused.value.cause == "the name of a chat is missing"
    with pytest.raises(BadUsage) as refused:
        find_name("zzz", names)
    assert refused.value.remedy == "see septet list"


def test_a_good_name_stays_as_it_is_and_of_a_bad_one_the_beginning_is_quoted() -> None:
    assert checked_name("clock-abc") == "clock-abc"
    with pytest.raises(BadUsage) as refused:
        checked_name("X" * 90)
    assert refused.value.cause == f"'{'X' * 80}' is not a valid name for a chat"


def test_a_name_has_three_words_of_the_goal_at_most() -> None:
    assert next(new_names("clock bars midi piano")).startswith("clock-bars-midi-")
    assert len(next(new_names("clock bars midi piano"))) == len("clock-bars-midi-abc")
