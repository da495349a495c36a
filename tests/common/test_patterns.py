"""Patterns that are compiled when they are first used find what compiled ones find."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.common.patterns import LazyPattern


@given(text=st.text(alphabet="abAB1 ,", max_size=20))
def test_a_lazy_pattern_finds_what_the_pattern_finds(text: str) -> None:
    lazy, pattern = LazyPattern(r"[ab]+", re.IGNORECASE), re.compile(r"[ab]+", re.IGNORECASE)
    for search in ("search", "match", "fullmatch"):
        found, expected = getattr(lazy, search)(text), getattr(pattern, search)(text)
        assert (found and found.span()) == (expected and expected.span())
    assert [one.span() for one in lazy.finditer(text)] == [one.span() for one in pattern.finditer(text)]
    assert lazy.findall(text) == pattern.findall(text)
    assert lazy.split(text) == pattern.split(text)
    assert lazy.sub("-", text) == pattern.sub("-", text)
    assert lazy.sub("-", text, count=1) == pattern.sub("-", text, count=1)


def test_a_pattern_that_is_none_is_noticed_when_it_is_used() -> None:
    with pytest.raises(re.error):
        LazyPattern("(").search("")
