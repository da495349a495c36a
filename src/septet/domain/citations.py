"""Numbers in an answer and the output lines that they come from: what no program printed is not said."""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

from septet.common.values import Value

AMOUNT = r"[-\u2212+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?"
NUMBER = re.compile(rf"(?<![\w.]){AMOUNT}(?!\w|[.,]\d)")
NO_AMOUNTS = re.compile(
    r"\d{4}-\d{2}-\d{2}|\d{1,2}:\d{2}(?::\d{2})?|[\w.-]*/(?=[\w.-]*[A-Za-z])[\w./-]+|[A-Za-z][\w.-]*/[\w./-]+"
)
"""Dates, times and paths: names of things, not findings."""
LABEL = re.compile(r"0\d+")
"""An hour, a month, a number of a thing: 04 is no four."""
RANGE = re.compile(r"(?<=\d)[-\u2013](?=\d)")
LISTED = re.compile(r"^\s*(?:#+\s*)?\d+[.)]\s", re.MULTILINE)


class Source(Value):
    """Where a number was printed: the script, the line of its output (from 1) and what stands there."""

    number: str
    script: str
    line: int
    text: str


class ScriptOutput(Value):
    """What a script printed."""

    script: str
    text: str


class Citations(Value):
    """The numbers of a text with their sources, and those that nobody printed."""

    sources: tuple[Source, ...] = ()
    without_source: tuple[str, ...] = ()


def trace_numbers(answer: str, outputs: Iterable[ScriptOutput], given: str = "") -> Citations:
    """Each number of the answer, once; those that stand in `given` (the question) need no source."""
    known = {value(number) for number in numbers(given)}
    printed = list(printed_numbers(outputs))
    sources: dict[Decimal, Source] = {}
    unfounded: dict[Decimal, str] = {}
    for number in numbers(LISTED.sub(" ", answer)):
        wanted = value(number)
        found = next((place for amount, place in printed if amount == wanted), None)
        if found is not None:
            sources.setdefault(
                wanted, Source(number=number, script=found.script, line=found.line, text=found.text)
            )
        elif wanted not in known:
            unfounded.setdefault(wanted, number)
    return Citations(sources=tuple(sources.values()), without_source=tuple(unfounded.values()))


def numbers(text: str) -> list[str]:
    """Numbers that stand alone: not labels, nor parts of names, dates, times, paths or versions."""
    return amounts(RANGE.sub(" ", NO_AMOUNTS.sub(" ", text)))


def amounts(text: str) -> list[str]:
    return [found for found in NUMBER.findall(text) if not LABEL.fullmatch(found)]


def value(number: str) -> Decimal:
    return Decimal(number.replace(",", "").replace("\u2212", "-"))


def printed_numbers(outputs: Iterable[ScriptOutput]) -> Iterator[tuple[Decimal, Source]]:
    """Every number that was printed; the newest output first."""
    for output in reversed(list(outputs)):
        for line, text in enumerate(output.text.splitlines(), start=1):
            for number in amounts(text):
                yield value(number), Source(number=number, script=output.script, line=line, text=text.strip())
