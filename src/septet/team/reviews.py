"""The text form of a review: a verdict line and findings, read leniently and merged."""

import re

from septet.domain.events import ReviewGiven
from septet.domain.plans import Refusal
from septet.domain.reviews import Finding, Severity, Verdict
from septet.domain.values import Value

VERDICT = re.compile(r"^\W*verdict\W*:\W*(accept|revise)", re.IGNORECASE | re.MULTILINE)
FINDING = re.compile(
    r"^\s*[-*]\s*\[(?P<severity>must|should|nice)\]\s*(?P<item>P\d+)?\s*(?:\((?P<evidence>[^)]*)\))?\s*:?\s*(?P<text>.+)$",
    re.IGNORECASE | re.MULTILINE,
)
MOST_FINDINGS = 5
SEVERITIES: tuple[Severity, ...] = ("must", "should", "nice")


class ReadReview(Value):
    verdict: Verdict
    findings: tuple[Finding, ...]


def parse_review(text: str) -> ReadReview | Refusal:
    """A verdict is needed; findings without the right form are not counted."""
    verdict = VERDICT.search(text)
    if verdict is None:
        return Refusal(reason="no verdict; the reply needs a line 'verdict: accept' or 'verdict: revise'")
    findings = unique([finding(match) for match in FINDING.finditer(text)])
    accept = verdict[1].lower() == "accept"
    if not accept and not findings:
        return Refusal(
            reason="'verdict: revise' without a finding; say what is wrong, '- [must] P1 (evidence): …'"
        )
    return ReadReview(verdict="accept" if accept else "revise", findings=findings)


def finding(match: re.Match[str]) -> Finding:
    severity = SEVERITIES[SEVERITIES.index(match["severity"].lower())]
    return Finding(
        id="",
        text=match["text"].strip(),
        item=(match["item"] or "").upper(),
        severity=severity,
        evidence=(match["evidence"] or "").strip(),
    )


def unique(findings: list[Finding]) -> tuple[Finding, ...]:
    """Each point once, the worst first, a few at most, numbered."""
    kept: dict[tuple[str, frozenset[str]], Finding] = {}
    for one in sorted(findings, key=lambda one: SEVERITIES.index(one.severity)):
        kept.setdefault((one.item, frozenset(re.findall(r"\w+", one.text.lower()))), one)
    few = list(kept.values())[:MOST_FINDINGS]
    return tuple(
        Finding(id=f"F{number}", text=one.text, item=one.item, severity=one.severity, evidence=one.evidence)
        for number, one in enumerate(few, start=1)
    )


def review_text(review: ReviewGiven) -> str:
    """A review as members and people read it."""
    lines = [f"verdict: {review.verdict}"]
    if review.overruled:
        lines.append(f"overruled: {review.overruled}")
    for one in review.findings:
        evidence = f" ({one.evidence})" if one.evidence else ""
        lines.append(f"- [{one.severity}] {one.item}{evidence}: {one.text}")
    return "\n".join(lines)
