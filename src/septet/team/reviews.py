"""Parses reviews into findings, without duplicates and the worst first, and a verdict that evidence can overrule."""

import re

from septet.common.values import Value
from septet.domain.events import ReviewGiven
from septet.domain.plans import Refusal
from septet.domain.reviews import Finding, FindingAnswer, Severity, Verdict
from septet.domain.state import State
from septet.team.baseline import tests_of
from septet.team.evidence import evidence_report, regressions, shortcomings

SAID = r"(?:(?:my|the|final|overall|so)\W+)*verdict\W+(?:is\W+)?(accept|revise)"
VERDICT = re.compile(
    rf"^\W*{SAID}|[.!?,;]\W+{SAID}(?:d|ed)?\W*$|\A\W*(accept|revise)(?:d|ed)?\W*$",
    re.IGNORECASE | re.MULTILINE,
)
"""A line, sentence or clause of its own, or the one word that a reply begins with."""
AGREED = re.compile(
    r"\A\W*(?:ok(?:ay)?|lgtm|(?:all |looks )?fine|looks good(?: to me)?|approved?|accepted)\W*\Z",
    re.IGNORECASE,
)
"""All of a reply that finds nothing."""
SEVERITY_MARK = r"(?:F\d+\b[ \t:.*`]*)?\[(?:must|should|nice)\]"
FINDING = re.compile(
    rf"""^(?P<indent>[ \t]*)(?:[-*+•]|\d+[.)])[ \t]*[*`]*(?={SEVERITY_MARK})[^\[]*\[(?P<severity>\w+)\][ \t*`:]*
    (?P<item>[PW]\d+)?[ \t*`]*(?:\((?P<evidence>[^)\n]*)\))?[ \t*`]*[:–—-]?[ \t*]*
    (?P<text>\S.*(?:\n(?P=indent)[ \t]+(?!(?:[-*+•]|\d+[.)])[ \t]*[*`]*{SEVERITY_MARK}).+)*)$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""A bullet with a severity, as the prompt asks for it and `review_text` prints it; the text may span several lines."""
ANSWER = re.compile(
    r"\b(?P<findings>F\d+(?:(?:\s*,\s*|\s+and\s+)F\d+)*)\W+(?:(?:is|are|was|were)\s+)?(?P<answer>fixed|refused)\b\W*"
    r"(?P<reason>.*?)\s*(?=\bF\d+\W+(?:fixed|refused)\b|$)",
    re.IGNORECASE | re.MULTILINE,
)
FINDING_ID = re.compile(r"F\d+", re.IGNORECASE)
MAX_FINDINGS = 5
SIMILARITY = 0.5
SEVERITIES: tuple[Severity, ...] = ("must", "should", "nice")
STOP_WORDS = frozenset(
    """a an and are as at be been but by can could does for from has have here if in instead into is it its must
    not of on or please should so still than that the their then there these this those to too very was when
    which while will with would you your code function line""".split()  # a list reads worse
)


class ParsedReview(Value):
    verdict: Verdict
    findings: tuple[Finding, ...]


def parse_review(text: str, *, again: bool = False) -> ParsedReview | Refusal:
    """Parse a review. A verdict is required; malformed findings are ignored.

    'accept' beside a [must] is refused once; if the reviewer does it `again`, it counts as 'revise'.
    """
    verdict = VERDICT.search(text)
    if AGREED.match(text):
        return ParsedReview(verdict="accept", findings=())
    if verdict is None:
        return Refusal(reason="no verdict; the reply needs a line 'verdict: accept' or 'verdict: revise'")
    findings = unique_findings([finding_from(match) for match in FINDING.finditer(text)])
    accept = "accept" in (word.lower() for word in verdict.groups() if word)
    if not accept and not findings:
        return Refusal(
            reason="'verdict: revise' without a finding; say what is wrong, '- [must] P1 (evidence): …'"
        )
    demands = [one for one in findings if one.severity == "must"]
    if accept and demands and not again:
        return Refusal(
            reason="'verdict: accept' beside a [must]: revise if it must be done, or accept and make it a [should]"
        )
    return ParsedReview(verdict="accept" if accept and not demands else "revise", findings=findings)


def finding_from(match: re.Match[str]) -> Finding:
    return Finding(
        id="",
        text=" ".join(match["text"].split()),
        item=(match["item"] or "").upper(),
        severity=SEVERITIES[SEVERITIES.index(match["severity"].lower())],
        evidence=re.sub("[`*]", "", match["evidence"] or "").strip(),
    )


def regression_findings(state: State) -> list[Finding]:
    """Findings for requirements that an earlier version met and the newest does not: the reviewer may miss them."""
    met = state.plan.met_before
    return [
        Finding(
            id="",
            text=f"a regression: version {met[line.item.id]} met it, this one does not ({line.detail})",
            item=line.item.id,
            severity="must",
            evidence="runner",
        )
        for line in regressions(state)
    ]


def unique_findings(findings: list[Finding]) -> tuple[Finding, ...]:
    """Drop findings that make the same point, sort the worst first, keep a few and number them."""
    kept: list[Finding] = []
    for one in sorted(findings, key=lambda one: SEVERITIES.index(one.severity)):
        if not any(same_point(one, other) for other in kept):
            kept.append(one)
    return tuple(
        Finding(id=f"F{number}", text=one.text, item=one.item, severity=one.severity, evidence=one.evidence)
        for number, one in enumerate(kept[:MAX_FINDINGS], start=1)
    )


def same_point(one: Finding, other: Finding) -> bool:
    """Whether both findings are about the same requirement and share most words."""
    if one.item != other.item:
        return False
    mine, theirs = stems(one.text), stems(other.text)
    smaller = min(len(mine), len(theirs))
    return bool(smaller) and len(mine & theirs) / smaller >= SIMILARITY


def stems(text: str) -> set[str]:
    """Words without stop words and without common endings."""
    words = set(re.findall(r"[a-z0-9_]+", text.lower())) - STOP_WORDS
    return {re.sub(r"(?:ing|ed|es|s|ly)$", "", word) if len(word) > 4 else word for word in words}


def has_evidence(found: Finding, state: State) -> bool:
    """Whether the finding names a file of the version, a failing test or an unmet requirement."""
    files = {file.path for file in state.work.files}
    failing = {*tests_of(state).failed, *(line.item.id for line in evidence_report(state) if not line.is_met)}
    named = re.split(r"[\s,;]+", found.evidence)
    return any(word.split(":")[0] in files or word in failing for word in named if word)


def judge_review(state: State, read: ParsedReview) -> tuple[Verdict, str]:
    """The verdict that counts, and the reason if it overrules the reviewer's."""
    red = shortcomings(state)
    if read.verdict == "accept":
        return ("revise", f"accepted although {'; '.join(red)}") if red else ("accept", "")
    if red or any(has_evidence(one, state) and one.severity != "nice" for one in read.findings):
        return "revise", ""
    return "accept", "all checks passed, and no finding names evidence that is there: they are advice"


def answers_to(review: ReviewGiven | None, *replies: str) -> tuple[FindingAnswer, ...]:
    """What the coder's replies say to each finding of the review; the last word on one counts."""
    found = [match for text in replies for match in ANSWER.finditer(text)]
    said = {one.upper(): match for match in found for one in FINDING_ID.findall(match["findings"])}
    answers: list[FindingAnswer] = []
    for one in review.findings if review else ():
        match = said.get(one.id)
        if match is None:
            answers.append(FindingAnswer(finding=one.id, answer="unanswered"))
        else:
            word = "fixed" if match["answer"].lower() == "fixed" else "refused"
            answers.append(FindingAnswer(finding=one.id, answer=word, reason=match["reason"].strip()))
    return tuple(answers)


def review_text(review: ReviewGiven) -> str:
    """Format a review for members and people."""
    lines = [f"verdict: {review.verdict}"]
    if review.overruled:
        lines.append(f"overruled: {review.overruled}")
    for one in review.findings:
        evidence = f" ({one.evidence})" if one.evidence else ""
        item = f" {one.item}" if one.item else ""
        lines.append(f"- {one.id} [{one.severity}]{item}{evidence}: {one.text}")
    return "\n".join(lines + [f"the person says: {remark}" for remark in review.remarks])
