"""Data cards: describe a data file (CSV, JSON lines, Parquet, text, gz), read once in bounded memory."""

import re
from collections.abc import Mapping, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from septet.common.documents import read_text
from septet.common.temporary import temporary_folder
from septet.common.text import pluralize
from septet.domain.events import DataDescribed
from septet.errors import BadUsage

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = "256MB"
SAMPLES = 3
WIDEST = 40
READERS = {
    ".csv": ("CSV", "read_csv(?, sample_size=20000)"),
    ".tsv": ("TSV", "read_csv(?, sample_size=20000)"),
    ".jsonl": ("JSON lines", "read_json(?, format='newline_delimited')"),
    ".ndjson": ("JSON lines", "read_json(?, format='newline_delimited')"),
    ".json": ("JSON", "read_json(?)"),
    ".parquet": ("Parquet", "read_parquet(?)"),
}
PLAIN = ("text", "read_csv(?, columns={'line': 'VARCHAR'}, header=false, delim='\x1f', quote='', escape='')")
MEANING = re.compile(
    r"^[\s|*\-]*[`\"']?(?P<name>[A-Za-z_]\w*)[`\"']?\s*(?:[:|,\t=–—]|\s-\s)+\s*(?P<text>.+?)[\s|]*$"
)
HEAD = ("column", "type", "smallest", "largest", "different", "empty", "meaning")


async def describe(path: str, dictionary: Mapping[str, str]) -> DataDescribed:
    """The card of one file, with the dictionary's descriptions of its columns."""
    return await to_thread.run_sync(card_of, Path(path), dictionary)


def card_of(path: Path, dictionary: Mapping[str, str]) -> DataDescribed:
    try:
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        size = path.stat().st_size
    except OSError as error:
        raise BadUsage(f"the data file {path} cannot be read: {error.strerror}", "check the path") from error
    return DataDescribed(path=str(path), sha256=digest, size=size, card=card(path, size, dictionary))


def card(path: Path, size: int, dictionary: Mapping[str, str]) -> str:
    duckdb = library()
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind, reader = READERS.get(
        suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:]), PLAIN
    )
    with temporary_folder("data") as scratch:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": MEMORY,
            "temp_directory": str(scratch),
            "threads": 2,
        }
        try:
            with duckdb.connect(":memory:", config=settings) as connection:
                return card_text(path, size, kind, reader, connection, dictionary)
        except duckdb.Error as error:
            raise BadUsage(
                f"the data file {path} is not valid {kind} ({first_error_line(error)})",
                "check it; text must be UTF-8",
            ) from error


def card_text(
    path: Path,
    size: int,
    kind: str,
    reader: str,
    connection: "DuckDBPyConnection",
    dictionary: Mapping[str, str],
) -> str:
    source = [str(path)]
    columns = connection.execute(f"SUMMARIZE SELECT * FROM {reader}", source).fetchall()  # noqa: S608  # a fixed set of readers
    samples = connection.execute(f"SELECT * FROM {reader} LIMIT {SAMPLES}", source).fetchall()  # noqa: S608  # as above
    rows = int(columns[0][10]) if columns else 0
    table = [HEAD, *(column_row(column, dictionary) for column in columns)]
    shape = f"{pluralize(rows, 'row')}, {pluralize(len(columns), 'column')}, {pluralize(size, 'byte')}"
    lines = [
        f"{path.name}: {kind}, {shape}",
        *align_columns(table),
        "first rows:",
    ]
    return "\n".join([*lines, *(" | ".join(cell_text(value) for value in sample) for sample in samples)])


def column_row(column: Sequence[object], dictionary: Mapping[str, str]) -> tuple[str, ...]:
    name, kind, smallest, largest, different = column[:5]
    empty = f"{float(str(column[11] or 0)):g} %"
    meaning = dictionary.get(str(name).lower(), "")
    return (str(name), str(kind), cell_text(smallest), cell_text(largest), f"≈{different}", empty, meaning)


def align_columns(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    ]


def cell_text(value: object) -> str:
    text = " ".join(str("" if value is None else value).split())
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def read_dictionary(path: Path | None) -> dict[str, str]:
    """Parse the meanings of columns: one line each, `name: meaning`, also as a table or CSV."""
    lines = read_text(path).splitlines() if path else []
    found = [match for line in lines if (match := MEANING.match(line))]
    return {match["name"].lower(): match["text"].strip(" \"'") for match in found}


def first_error_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:200]


def library():
    try:
        import duckdb
    except ImportError as error:
        raise BadUsage("data files need DuckDB", "install it: pip install 'septet[data]'") from error
    return duckdb
