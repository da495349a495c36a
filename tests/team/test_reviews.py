"""Reviews: a verdict, and each point once."""

import pytest

from septet.domain.plans import Refusal
from septet.domain.reviews import Finding
from septet.team.reviews import parse_review


def test_findings_carry_item_severity_and_evidence() -> None:
    review = parse_review(
        "verdict: revise\n- [should] P1: slow\n- [must] P2 (a.py:3): wrong\n- [nice] tidy up"
    )
    assert not isinstance(review, Refusal)
    assert review.verdict == "revise"
    assert review.findings == (
        Finding(id="F1", text="wrong", item="P2", severity="must", evidence="a.py:3"),
        Finding(id="F2", text="slow", item="P1", severity="should"),
        Finding(id="F3", text="tidy up", severity="nice"),
    )


def test_a_hundred_times_the_same_point_is_one_point() -> None:
    lines = [f"- [must] P1 (a.py:{n}): The function subtracts{'.' * (n % 3)}" for n in range(100)]
    review = parse_review("\n".join(["**Verdict:** revise", *lines]))
    assert not isinstance(review, Refusal)
    assert len(review.findings) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [("It looks fine to me.", "no verdict"), ("verdict: revise\nIt is bad.", "without a finding")],
)
def test_what_is_no_review_is_refused(text: str, reason: str) -> None:
    review = parse_review(text)
    assert isinstance(review, Refusal)
    assert reason in review.reason
