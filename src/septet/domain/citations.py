"""What an answer rests on: numbers are traced to lines that programs printed, `file:line` references to files."""

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from msgspec.structs import replace

from septet.common.patterns import LazyPattern
from septet.common.values import Value

AMOUNT = r"[-\u2212+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?"
NUMBER = LazyPattern(rf"(?<![\w.]){AMOUNT}(?!\w|[.,]\d)")
NOT_AMOUNTS = LazyPattern(
    r"\d{4}-\d{2}-\d{2}|\d{1,2}:\d{2}(?::\d{2})?|[\w.-]*/(?=[\w.-]*[A-Za-z])[\w./-]+|[A-Za-z][\w.-]*/[\w./-]+"
)
"""Dates, times and paths: their digits are not results."""
LABEL = LazyPattern(r"0\d+")
"""An hour, a month or an id: 04 is not the number four."""
RANGE = LazyPattern(r"(?<=\d)[-\u2013](?=\d)")
LIST_NUMBER = LazyPattern(r"^\s*(?:#+\s*)?\d+[.)]\s", re.MULTILINE)


class Source(Value):
    """Where a number was printed: the script, the line number of its output (from 1) and the text of the line."""

    number: str
    script: str
    line: int
    text: str


class ScriptOutput(Value):
    """What a script printed."""

    script: str
    text: str


class Citations(Value):
    """The numbers of a text with their sources, and those without one."""

    sources: tuple[Source, ...] = ()
    without_source: tuple[str, ...] = ()


def trace_numbers(answer: str, outputs: Iterable[ScriptOutput], given: str = "") -> Citations:
    """Find the source of each number of the answer; numbers in `given` (the question) need none."""
    known = {value(number) for number in separate_numbers(given)}
    printed = list(printed_numbers(outputs))
    sources: dict[Decimal, Source] = {}
    unsourced: dict[Decimal, str] = {}
    for number in separate_numbers(LIST_NUMBER.sub(" ", answer)):
        wanted = value(number)
        source = next((source for amount, source in printed if amount == wanted), None)
        if source is not None:
            sources.setdefault(wanted, replace(source, number=number))
        elif wanted not in known:
            unsourced.setdefault(wanted, number)
    return Citations(sources=tuple(sources.values()), without_source=tuple(unsourced.values()))


def separate_numbers(text: str) -> list[str]:
    """Return the separate numbers: not labels, nor parts of names, dates, times, paths or versions."""
    return amounts(RANGE.sub(" ", NOT_AMOUNTS.sub(" ", text)))


def amounts(text: str) -> list[str]:
    return [number for number in NUMBER.findall(text) if not LABEL.fullmatch(number)]


def value(number: str) -> Decimal:
    return Decimal(number.replace(",", "").replace("\u2212", "-"))


def printed_numbers(outputs: Iterable[ScriptOutput]) -> Iterator[tuple[Decimal, Source]]:
    """Yield every number that was printed, newest output first."""
    for output in reversed(list(outputs)):
        for line, text in enumerate(output.text.splitlines(), start=1):
            for number in amounts(text):
                yield value(number), Source(number=number, script=output.script, line=line, text=text.strip())


REFERENCE = LazyPattern(
    r"(?<![\w/.:@-])(?P<path>/?(?:[\w.@+-]+/)*[\w.+-]*[A-Za-z_][\w+-]*(?:\.[\w+-]+)*)"
    r":(?P<first>\d{1,7})(?:[-\u2013](?P<last>\d{1,7}))?(?![\w:]|\.\d)"
)
ADDRESS = LazyPattern(r"\b[A-Za-z][\w+.-]*://\S+")
"""A web address: what follows its colon is a port."""


class Reference(Value):
    """A line of a file that an answer names, and what stands there."""

    path: str
    line: int
    text: str


class References(Value):
    """The references of an answer: those that lead to a line, and those that do not, with the reason."""

    found: tuple[Reference, ...] = ()
    unverified: tuple[str, ...] = ()


def check_references(answer: str, texts: Mapping[str, str], root: str = "") -> References:
    """Look each `file:line` up in the texts; a part of a path will do where a file ends with it."""
    found: dict[tuple[str, int], Reference] = {}
    unverified: dict[str, str] = {}
    for match in REFERENCE.finditer(ADDRESS.sub(" ", answer)):
        path = match["path"].removeprefix(f"{root}/").removeprefix("./")
        names = [path] if path in texts else [one for one in texts if one.endswith(f"/{path}")]
        first, last = int(match["first"]), int(match["last"] or match["first"])
        reference = next(filter(None, (line_in(name, texts, first, last) for name in names)), None)
        if reference is not None:
            found[reference.path, first] = reference
        elif names:
            unverified[match[0]] = f"{names[0]} has no such line"
        elif looks_like_file(path, texts):
            unverified[match[0]] = "there is no such file"
    return References(
        found=tuple(found.values()),
        unverified=tuple(f"{said} ({why})" for said, why in unverified.items()),
    )


def line_in(path: str, texts: Mapping[str, str], first: int, last: int) -> Reference | None:
    lines = texts.get(path, "").splitlines()
    inside = 1 <= first <= last <= len(lines)
    return Reference(path=path, line=first, text=lines[first - 1].strip()) if inside else None


def looks_like_file(path: str, texts: Iterable[str]) -> bool:
    """It has an extension, and is in a folder or has the extension of another file; `localhost:80` is none."""
    folder, _, name = path.rpartition("/")
    ending = name[name.rfind(".") :] if "." in name else ""
    return bool(ending) and (bool(folder) or any(one.endswith(ending) for one in texts))
