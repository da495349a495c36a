"""A token is one text, and a text is one token."""

from hypothesis import given
from hypothesis import strategies as st

from septet.common.text import text_of, token


@given(text=st.text(st.characters(codec="utf-8")))
def test_a_text_is_one_token_and_comes_back(text: str) -> None:
    assert text_of(token(text)) == text
    assert not set(token(text)) & set(" .*>\t\r\n")
    assert token(text)
