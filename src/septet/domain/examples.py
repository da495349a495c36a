"""Code examples: what the exemplar knows, how it is asked, and what makes two failures the same."""

import re

from septet.domain.runs import RunResult
from septet.domain.values import Value

LONGEST_SNIPPET = 4_000
TELLING = (
    re.compile(r"(?:E +)?[\w.]*(?:Error|Exception|Exit|Interrupt|Warning)\b"),
    re.compile(r"E +\S"),
    re.compile(r"(?:FAILED|ERROR) "),
)
"""Lines that say what went wrong, the most telling kind first; pytest cuts its own summary short."""


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
    lines = [line.strip() for line in (result.stdout + "\n" + result.stderr).splitlines() if line.strip()]
    if not lines:
        return f"exit {result.exit_code}"
    line = next(
        (found for telling in TELLING for found in reversed(lines) if telling.match(found)), lines[-1]
    )
    line = re.sub(r"0x[0-9a-f]+", "0x…", line.removeprefix("E ").strip())
    return re.sub(r"\d+(?:\.\d+)?", "0", line)[:300]


def words(text: str) -> list[str]:
    """Words and the parts of identifiers, lower case: `readCSV_file` is read, csv and file."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", re.sub(r"[_\W]+", " ", text))
    return [part.lower() for part in parts if len(part) > 1]
