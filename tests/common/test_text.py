"""Text for people: numbers with their nouns, lists of names, terminals that obey no program, tokens of any text."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.common.text import (
    TerminalDecoder,
    decode_token,
    encode_token,
    join_words,
    pluralize,
    printable,
    unified_diff,
)

_ANY = (
    st.text(st.sampled_from("\x1b[]0;mHJ\x07\\\x9b\x9d\x90\x9cP+q8:/x \n\r\t\x00\x7f\u202ea漢")) | st.text()
)


@given(_ANY)
def test_no_control_character_but_newline_and_tab_comes_out(text: str) -> None:
    left = {character for character in printable(text) if unicodedata.category(character) == "Cc"}
    assert left <= {"\n", "\t"}


@given(_ANY)
def test_what_is_neutral_stays_as_it_is(text: str) -> None:
    assert printable(printable(text)) == printable(text)


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs"])))
def test_ordinary_text_is_untouched(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]52;c;b3duZWQ=\x1b\\text", "text"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\x9b2Jtext\x1bP+q544e\x1b\\", "text"),
        ("50%\r100%\r\n", "50%\n100%\n"),
        ("bell\x07 back\x08 nul\x00", "bell␇ back␈ nul␀"),
        ("photo\u202egnp.exe", "photo<U+202E>gnp.exe"),
        ("unfinished \x1b]0;rest", "unfinished "),
    ],
)
def test_what_becomes_of_known_tricks(text: str, shown: str) -> None:
    assert printable(text) == shown


def piecewise(text: str, cuts: list[int]) -> str:
    content = text.encode()
    edges = [0, *sorted(cut % (len(content) + 1) for cut in cuts), len(content)]
    pieces = TerminalDecoder()
    said = [pieces.decode(content[start:end]) for start, end in pairwise(edges)]
    return "".join([*said, pieces.flush()])


CUTS = st.lists(st.integers(0, 200), max_size=6)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"], include_characters="\r\n\t")), CUTS)
def test_pieces_say_the_same_as_the_whole(text: str, cuts: list[int]) -> None:
    assert piecewise(text, cuts) == printable(text)


@given(_ANY, CUTS)
def test_no_control_character_comes_out_of_pieces(text: str, cuts: list[int]) -> None:
    left = {character for character in piecewise(text, cuts) if unicodedata.category(character) == "Cc"}
    assert left <= {"\n", "\t"}


@pytest.mark.parametrize(
    "text", ["a\x1b[31mred\x1b[0m", "\x1b]0;title\x07b", "x\r\ny", "\x1b]8;;u\x1b\\l", "\x1b(B"]
)
def test_a_sequence_in_two_pieces_is_still_one(text: str) -> None:
    for cut in range(len(text)):
        pieces = TerminalDecoder()
        said = pieces.decode(text[:cut].encode()) + pieces.decode(text[cut:].encode()) + pieces.flush()
        assert said == printable(text)


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 answers"), (1, "1 answer"), (2, "2 answers"), (1234, "1,234 answers")]
)
def test_one_is_singular(number: int, said: str) -> None:
    assert pluralize(number, "answer") == said


def test_a_noun_may_have_a_plural_of_its_own() -> None:
    assert pluralize(1, "reply", "replies") == "1 reply"
    assert pluralize(3, "reply", "replies") == "3 replies"


def test_names_stand_as_in_a_sentence() -> None:
    assert [join_words(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert join_words(["a", "b"], "or") == "a or b"


@given(text=st.text(st.characters(codec="utf-8")))
def test_a_text_is_one_token_and_comes_back(text: str) -> None:
    assert decode_token(encode_token(text)) == text
    assert not set(encode_token(text)) & set(" .*>\t\r\n")
    assert encode_token(text)


def apply(before: list[str], diff: list[str]) -> list[str]:
    """What `patch` makes of it."""
    result, place = list[str](), 0
    for line in diff[2:]:
        if line.startswith("@@"):
            first, _, count = line.split()[1][1:].partition(",")
            start = int(first) - (count != "0")
            result, place = [*result, *before[place:start]], start
        elif line.startswith("+"):
            result.append(line[1:])
        else:
            result += before[place : place + 1] if line.startswith(" ") else []
            place += 1
    return [*result, *before[place:]]


def test_a_diff_of_a_long_file_with_frequent_lines_shows_only_what_changed() -> None:
    before = [line for number in range(400) for line in (f"case {number % 3}:\n", "    pass\n", "\n")]
    after = [*before[:300], "first\n", *before[300:700], "second\n", *before[701:]]
    diff = list(unified_diff(before, after, "a", "b"))
    assert [line for line in diff if line[0] in "+-"] == [
        "--- a\n",
        "+++ b\n",
        "+first\n",
        f"-{before[700]}",
        "+second\n",
    ]
    assert apply(before, diff) == after


LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n"]), max_size=12)


@given(LINES, LINES)
def test_a_diff_makes_one_text_of_the_other(before: list[str], after: list[str]) -> None:
    diff = list(unified_diff(before, after, "a", "b"))
    assert apply(before, diff) == after
    assert bool(diff) == (before != after)
