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


PYTEST_SAYS = """\
    assert n(2) == {expected}
E   assert {got} == {expected}
E    +  where {got} = <function n at 0x{address}>(2)
E    +    and {expected} = len('{path}')
FAILED test_n.py::test_two - assert {got} == {expected}
1 failed in {seconds}s
"""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("E   OSError: /tmp/tmpab12cd/a.txt is gone", "E   OSError: /tmp/tmpzz/a.txt is gone"),
        ("E   assert <function n at 0x7f01aa> is None", "E   assert <function n at 0x55beef> is None"),
        ("KeyError: '5f2b9c01d4e8'", "KeyError: '9e107d9d372b'"),
        ("1 failed in 0.05s", "1 failed in 62.10s (0:01:02)"),
        ("ValueError: took 3 ms", "ValueError: took 12.5 s"),
    ],
)
def test_what_differs_from_run_to_run_is_not_in_a_signature(one: str, other: str) -> None:
    assert signature(RunResult(exit_code=1, stdout=one)) == signature(RunResult(exit_code=1, stdout=other))


def test_a_failed_assert_is_known_by_what_was_asserted() -> None:
    said = PYTEST_SAYS.format(got=3, expected=4, address="7f01aa", path="/tmp/a/b", seconds="0.12")
    assert signature(RunResult(exit_code=1, stdout=said)) == "assert 0 == 0"


def test_different_failures_have_different_signatures() -> None:
    texts = ["KeyError: 'name'", "KeyError: 'size'", "E   assert a == b", "E   assert a == c", "exit 3"]
    assert len({signature(RunResult(exit_code=1, stdout=text)) for text in texts}) == len(texts)
