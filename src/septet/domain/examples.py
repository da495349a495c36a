"""Code examples: what the exemplar knows, how it is asked, and what makes two failures the same."""

import re

from septet.common.values import Value
from septet.domain.runs import RunResult

LONGEST_SNIPPET = 4_000
TELLING = (
    re.compile(r"(?:E +)?[\w.]*(?:Error|Exception|Exit|Interrupt|Warning)\b"),
    re.compile(r"E +\S"),
    re.compile(r"(?:FAILED|ERROR) "),
)
"""Lines that say what went wrong, the most telling kind first; pytest cuts its own summary short."""
DETAIL = re.compile(r"E +\+ +(?:where|and) ")
"""How pytest explains the values of an assert: by objects and their addresses."""
TEMPORARY = r"(?:/private)?/(?:(?:var/)?tmp|dev/shm|var/folders)"
VARYING = (
    (re.compile(rf"{TEMPORARY}/(?:[^\s/'\"]+/)+"), "…/"),
    (re.compile(rf"{TEMPORARY}/[^\s/'\"]+"), "…"),
    (re.compile(r"0x[0-9a-fA-F]+"), "0x…"),
    (re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b"), "…"),
    (re.compile(r"\d+(?:\.\d+)? ?(?:ns|us|µs|ms|s|seconds?|minutes?)\b(?: \([\d:]+\))?"), "0 s"),
    (re.compile(r"\d+(?:\.\d+)?"), "0"),
)
"""What differs from run to run, and what stands for it."""


class Example(Value):
    """A snippet that worked, what it is about, and where it comes from."""

    title: str
    code: str
    source: str
    text: str = ""


def signature(result: RunResult) -> str:
    """What went wrong, without what differs from run to run: the same failure gives the same text."""
    if result.stopped_by:
        return f"stopped by the {result.stopped_by} limit"
    said = (result.stdout + "\n" + result.stderr).splitlines()
    lines = [line.strip() for line in said if line.strip() and not DETAIL.match(line.strip())]
    if not lines:
        return f"exit {result.exit_code}"
    line = next(
        (found for telling in TELLING for found in reversed(lines) if telling.match(found)), lines[-1]
    )
    line = line.removeprefix("E ").strip()
    for varying, sign in VARYING:
        line = varying.sub(sign, line)
    return line[:300]


def words(text: str) -> list[str]:
    """Words and the parts of identifiers, lower case: `readCSV_file` is read, csv and file."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", re.sub(r"[_\W]+", " ", text))
    return [part.lower() for part in parts if len(part) > 1]
