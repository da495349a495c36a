"""Reviews: structured findings and a verdict."""

from typing import Literal

from septet.common.values import Value

Severity = Literal["must", "should", "nice"]
Verdict = Literal["accept", "revise"]


class FindingAnswer(Value):
    """The coder's answer to a finding: fixed, refused with a reason, or unanswered."""

    finding: str
    answer: Literal["fixed", "refused", "unanswered"]
    reason: str = ""


class Finding(Value):
    """One criticism, tied to a plan item and to evidence (a failing check or file:line) if there is any."""

    id: str
    text: str
    item: str = ""
    severity: Severity = "should"
    evidence: str = ""
