"""Reviews: a verdict, and each point once."""

import pytest
from team.states import chat, planned, ran, version

from septet.domain.events import Event, ReviewGiven
from septet.domain.plans import Refusal
from septet.domain.reviews import Finding, FindingAnswer, Verdict
from septet.team.reviews import (
    ParsedReview,
    answers_to,
    judge_review,
    parse_review,
    review_text,
    unique_findings,
)


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


@pytest.mark.parametrize("text", ["Accept.", "**accept**", "accepted", "ok", "LGTM!", "Looks good to me."])
def test_one_word_is_a_verdict(text: str) -> None:
    review = parse_review(text)
    assert not isinstance(review, Refusal)
    assert review.verdict == "accept"


def test_a_hundred_times_the_same_point_is_one_point() -> None:
    lines = [f"- [must] P1 (a.py:{n}): The function subtracts{'.' * (n % 3)}" for n in range(100)]
    review = parse_review("\n".join(["**Verdict:** revise", *lines]))
    assert not isinstance(review, Refusal)
    assert len(review.findings) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("It looks fine to me, but for a thing.", "no verdict"),
        ("verdict: revise\nIt is bad.", "without a finding"),
    ],
)
def test_what_is_no_review_is_refused(text: str, reason: str) -> None:
    review = parse_review(text)
    assert isinstance(review, Refusal)
    assert reason in review.reason


SUBJECTS = ["The hour hand", "Hour hand", "the hour-hand", "Its hour hand", "This hour hand"]
VERBS = ["does not move with the minutes", "is not moving with minutes", "never moves when the minutes pass"]
OTHERS = ["stays on the full hour, ignoring minutes", "should move with each minute", "moved not by minute"]
TAILS = ["", ".", ", please fix it", " at all", " in the code", "!", " (still)"]


def test_a_hundred_rewordings_of_one_point_are_a_few_points_at_most() -> None:
    texts = [f"{s} {v}{t}" for s in SUBJECTS for v in [*VERBS, *OTHERS] for t in TAILS][:120]
    lines = [f"- [{'must' if n % 2 else 'should'}] P2 (clock.py:{n}): {text}" for n, text in enumerate(texts)]
    review = parse_review("\n".join(["verdict: revise", *lines]))
    assert not isinstance(review, Refusal)
    worst, *others = review.findings
    assert worst.severity == "must"
    assert len(others) < 5


def test_different_points_stay_apart() -> None:
    review = parse_review(
        "verdict: revise\n- [must] P1 (a.py:1): division by zero is not handled\n"
        "- [must] P1 (a.py:9): negative numbers give a wrong sign\n- [should] P2: the help text is missing"
    )
    assert not isinstance(review, Refusal)
    assert len(review.findings) == 3


def test_different_points_about_the_same_evidence_stay_apart() -> None:
    review = parse_review(
        "verdict: revise\n- [must] P1 (a.py:1): division by zero is not handled\n"
        "- [must] P1 (a.py:1): negative numbers give a wrong sign\n"
        "- [should] P1 (a.py:1): dividing by zero still is not handled"
    )
    assert not isinstance(review, Refusal)
    texts = [one.text for one in review.findings]
    assert texts == ["division by zero is not handled", "negative numbers give a wrong sign"]


def test_the_form_that_is_printed_is_read() -> None:
    findings = (
        Finding(id="F1", text="it subtracts", item="P2", severity="must", evidence="add.py:5"),
        Finding(id="F2", text="the help is missing", item="P1", severity="should"),
        Finding(id="F3", text="blue is asked for", item="W1", severity="nice", evidence="add.py:7"),
    )
    given = ReviewGiven(version=1, tree="", verdict="revise", findings=findings)
    assert parse_review(review_text(given)) == ParsedReview(verdict="revise", findings=findings)


@pytest.mark.parametrize(
    "line",
    [
        "- F1 [must] P2: it subtracts",
        "- **F1 [must]** P2: it subtracts",
        "* F1: [must] P2 - it subtracts",
        "1. [must] P2: it subtracts",
        "- [Must] **P2**: it\n  subtracts",
    ],
)
def test_findings_are_read_however_they_are_listed(line: str) -> None:
    review = parse_review(f"verdict: revise\n{line}\n- [nice] more tests\n")
    assert not isinstance(review, Refusal)
    assert review.findings[0] == Finding(id="F1", text="it subtracts", item="P2", severity="must")
    assert len(review.findings) == 2


GREEN = [*planned(), *version(1, "a"), *ran(1, "a", green=True)]
RED = [*planned(), *version(1, "a"), *ran(1, "a", green=False)]


def read(verdict: Verdict, *findings: Finding) -> ParsedReview:
    return ParsedReview(verdict=verdict, findings=findings)


@pytest.mark.parametrize(
    ("events", "given", "counts"),
    [
        (GREEN, read("accept"), "accept"),
        (RED, read("accept"), "revise"),
        (GREEN, read("revise", Finding(id="F1", text="I do not like it")), "accept"),
        (GREEN, read("revise", Finding(id="F1", text="slow", evidence="other.py:3")), "accept"),
        (
            GREEN,
            read("revise", Finding(id="F1", text="tidy", evidence="add.py:3", severity="nice")),
            "accept",
        ),
        (GREEN, read("revise", Finding(id="F1", text="overflow", evidence="add.py:3")), "revise"),
        (RED, read("revise", Finding(id="F1", text="I do not like it")), "revise"),
    ],
)
def test_the_verdict_that_counts_follows_the_evidence(
    events: list[Event], given: ParsedReview, counts: str
) -> None:
    verdict, overruled = judge_review(chat(events), given)
    assert verdict == counts
    assert bool(overruled) == (verdict != given.verdict)


def test_the_coder_answers_each_finding() -> None:
    review = ReviewGiven(
        version=1, tree="", verdict="revise", findings=tuple(Finding(id=f"F{n}", text="x") for n in (1, 2, 3))
    )
    text = "**F1: fixed**, it adds now\n- F2: refused, because the plan says so\n\n```python a.py\n1\n```"
    assert answers_to(review, text) == (
        FindingAnswer(finding="F1", answer="fixed", reason="it adds now"),
        FindingAnswer(finding="F2", answer="refused", reason="because the plan says so"),
        FindingAnswer(finding="F3", answer="unanswered"),
    )


def test_findings_that_share_half_of_their_words_make_the_same_point_if_they_are_of_one_item() -> None:
    def points(one: str, other: str, item: str = "P1") -> int:
        found = [
            Finding(id="", text=one, item="P1", severity="must", evidence=""),
            Finding(id="", text=other, item=item, severity="must", evidence=""),
        ]
        return len(unique_findings(found))

    assert points("hands overlap badly", "numerals hands overlap tiny") == 1
    assert points("hands overlap", "hands tiny") == 1, "half of the words"
    assert points("hands overlap badly", "hands tiny green") == 2
    assert points("hands overlap", "hands overlap", item="P2") == 2


def test_the_worst_findings_come_first_and_five_are_kept() -> None:
    texts = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"]
    found = [Finding(id="", text=text, item="", severity="nice", evidence="") for text in texts]
    worst = Finding(id="", text="golf", item="", severity="must", evidence="")
    kept = unique_findings([*found, worst])
    assert [(one.id, one.text) for one in kept] == [
        ("F1", "golf"),
        ("F2", "alpha"),
        ("F3", "bravo"),
        ("F4", "charlie"),
        ("F5", "delta"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It has tags now. F1: fixed, the mark is gone. F2: refused, by the plan", ["fixed", "refused"]),
        ("All green. F1 and F2 are fixed.", ["fixed", "fixed"]),
        ("F1 is not fixed yet, F2: fixed", ["unanswered", "fixed"]),
    ],
)
def test_answers_to_findings_may_stand_anywhere_in_the_words(text: str, said: list[str]) -> None:
    findings = tuple(Finding(id=f"F{number}", text="x") for number in (1, 2))
    review = ReviewGiven(version=1, tree="", verdict="revise", findings=findings)
    assert [one.answer for one in answers_to(review, text)] == said


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("LGTM, verdict: accept", "accept"),
        ("My final verdict is **accept**.", "accept"),
        ("It works; the verdict: revise\n- [must] P1 (a.py:1): it adds only two", "revise"),
    ],
)
def test_a_verdict_may_be_a_clause(text: str, verdict: str) -> None:
    read = parse_review(text)
    assert isinstance(read, ParsedReview)
    assert read.verdict == verdict


def test_what_is_no_verdict_is_none() -> None:
    assert isinstance(parse_review("I cannot give the verdict accept here, the tests are red"), Refusal)
