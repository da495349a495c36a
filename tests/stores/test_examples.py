"""The exemplar's knowledge base: a hit with its source, or nothing where nothing fits."""

from pathlib import Path

import pytest

from septet.domain.examples import Example, signature, words
from septet.domain.runs import RunResult
from septet.errors import StoreFailed
from septet.stores.examples import ExampleShelf

pytestmark = pytest.mark.anyio

NUMBERS = Example(
    title="numbers with a thousands separator",
    text="ValueError: could not convert string to float: '1,200'",
    code="float(text.replace(',', ''))",
    source="notes.md",
)
DATES = Example(title="parse an ISO date", code="datetime.fromisoformat(text)", source="dates.py:3")


async def test_a_failure_finds_the_example_that_is_about_it(tmp_path: Path) -> None:
    shelf = ExampleShelf(tmp_path / "examples.db")
    assert await shelf.learn([NUMBERS, DATES]) == 2
    assert await shelf.find("ValueError: could not convert string to float: '0,0'") == NUMBERS
    assert await shelf.find("cannot parse ISO date") == DATES


async def test_what_is_not_known_is_not_guessed(tmp_path: Path) -> None:
    shelf = ExampleShelf(tmp_path / "examples.db")
    assert await shelf.find("anything") is None
    await shelf.learn([NUMBERS])
    assert await shelf.find("ConnectionRefusedError while opening a socket on the loopback interface") is None
    assert await shelf.find("") is None
    assert await shelf.find('") OR ("') is None


async def test_the_same_example_is_kept_once(tmp_path: Path) -> None:
    shelf = ExampleShelf(tmp_path / "examples.db")
    assert [await shelf.learn([NUMBERS, NUMBERS]), await shelf.learn([NUMBERS])] == [1, 0]


async def test_a_file_that_is_no_shelf_is_named(tmp_path: Path) -> None:
    (tmp_path / "examples.db").write_bytes(b"not a database, but long enough to be looked at" * 30)
    with pytest.raises(StoreFailed, match="examples"):
        await ExampleShelf(tmp_path / "examples.db").find("anything")


def test_identifiers_are_words() -> None:
    assert words("readCSV_file parseHTTPResponse x") == ["read", "csv", "file", "parse", "http", "response"]


def test_the_same_failure_has_the_same_signature() -> None:
    first = RunResult(exit_code=1, stderr='File "a.py", line 3\nValueError: bad 12 at 0x7f01\n')
    second = RunResult(exit_code=1, stderr='File "a.py", line 9\nValueError: bad 7 at 0x7f99\n')
    assert signature(first) == signature(second) == "ValueError: bad 0 at 0x…"
    assert signature(RunResult(exit_code=1, stopped_by="time")) == "stopped by the time limit"
    assert signature(RunResult(exit_code=3)) == "exit 3"
