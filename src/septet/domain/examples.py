"""Code examples of the exemplar, and the signature by which failures are compared."""

import re

from septet.common.values import Value
from septet.domain.runs import RunResult

MAX_SNIPPET_LENGTH = 4_000
ERROR_LINES = (
    re.compile(r"(?:E +)?[\w.]*(?:Error|Exception|Exit|Interrupt|Warning)\b"),
    re.compile(r"E +\S"),
    re.compile(r"(?:FAILED|ERROR) "),
)
"""Lines that name the error, in order of preference; pytest truncates its own summary."""
ASSERT_DETAIL = re.compile(r"E +\+ +(?:where|and) ")
"""How pytest explains the values of an assert: with objects and their addresses."""
TEMPORARY = r"(?:/private)?/(?:(?:var/)?tmp|dev/shm|var/folders)"
VARYING = (
    (re.compile(rf"{TEMPORARY}/(?:[^\s/'\"]+/)+"), "…/"),
    (re.compile(rf"{TEMPORARY}/[^\s/'\"]+"), "…"),
    (re.compile(r"0x[0-9a-fA-F]+"), "0x…"),
    (re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b"), "…"),
    (re.compile(r"\d+(?:\.\d+)? ?(?:ns|us|µs|ms|s|seconds?|minutes?)\b(?: \([\d:]+\))?"), "0 s"),
    (re.compile(r"\d+(?:\.\d+)?"), "0"),
)
"""What differs from run to run, and its placeholder."""


class Example(Value):
    """A snippet that worked, what it is about, and its source."""

    title: str
    code: str
    source: str
    text: str = ""


def signature(result: RunResult) -> str:
    """Return the line that names the error, without what differs from run to run: equal for equal failures."""
    if result.stopped_by:
        return f"stopped by the {result.stopped_by} limit"
    output = (result.stdout + "\n" + result.stderr).splitlines()
    lines = [line.strip() for line in output if line.strip() and not ASSERT_DETAIL.match(line.strip())]
    if not lines:
        return f"exit {result.exit_code}"
    line = next(
        (line for pattern in ERROR_LINES for line in reversed(lines) if pattern.match(line)), lines[-1]
    )
    line = line.removeprefix("E ").strip()
    for pattern, placeholder in VARYING:
        line = pattern.sub(placeholder, line)
    return line[:300]


def words(text: str) -> list[str]:
    """Return words and the parts of identifiers in lower case: `readCSV_file` gives read, csv and file."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", re.sub(r"[_\W]+", " ", text))
    return [part.lower() for part in parts if len(part) > 1]
