"""Numbers with their nouns."""

import pytest

from septet.common.text import counted, listed


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 answers"), (1, "1 answer"), (2, "2 answers"), (1234, "1,234 answers")]
)
def test_one_is_singular(number: int, said: str) -> None:
    assert counted(number, "answer") == said


def test_a_noun_may_have_a_plural_of_its_own() -> None:
    assert counted(1, "reply", "replies") == "1 reply"
    assert counted(3, "reply", "replies") == "3 replies"


def test_names_stand_as_in_a_sentence() -> None:
    assert [listed(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert listed(["a", "b"], "or") == "a or b"
