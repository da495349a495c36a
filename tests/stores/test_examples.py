"""The exemplar's knowledge base: a hit with its source, or nothing where nothing fits."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.domain.plans import Example, signature, words
from septet.domain.runs import RunResult
from septet.errors import BadConfig, ModelFailed, StoreFailed
from septet.models.credentials import bearer
from septet.models.embeddings import Embedder
from septet.models.http import HttpClient
from septet.settings.home import find_home
from septet.stores.examples import FullTextExamples, HybridExamples, fuse_rankings
from septet.testing.replies import bag_of_words
from septet.testing.server import MockServer, serve_mock
from septet.wiring.session import open_session

pytestmark = pytest.mark.anyio

NUMBERS = Example(
    title="numbers with a thousands separator",
    text="ValueError: could not convert string to float: '1,200'",
    code="float(text.replace(',', ''))",
    source="notes.md",
)
DATES = Example(title="parse an ISO date", code="datetime.fromisoformat(text)", source="dates.py:3")


async def test_a_failure_finds_the_example_that_is_about_it(tmp_path: Path) -> None:
    examples = FullTextExamples(tmp_path / "examples.db")
    assert await examples.learn([NUMBERS, DATES]) == 2
    assert await examples.find("ValueError: could not convert string to float: '0,0'") == NUMBERS
    assert await examples.find("cannot parse ISO date") == DATES


async def test_what_is_not_known_is_not_guessed(tmp_path: Path) -> None:
    examples = FullTextExamples(tmp_path / "examples.db")
    assert await examples.find("anything") is None
    await examples.learn([NUMBERS])
    assert (
        await examples.find("ConnectionRefusedError while opening a socket on the loopback interface") is None
    )
    assert await examples.find("") is None
    assert await examples.find('") OR ("') is None


async def test_the_same_example_is_kept_once(tmp_path: Path) -> None:
    examples = FullTextExamples(tmp_path / "examples.db")
    assert [await examples.learn([NUMBERS, NUMBERS]), await examples.learn([NUMBERS])] == [1, 0]


async def test_a_file_that_holds_no_examples_is_named(tmp_path: Path) -> None:
    (tmp_path / "examples.db").write_bytes(b"not a database, but long enough to be looked at" * 30)
    with pytest.raises(StoreFailed, match="examples"):
        await FullTextExamples(tmp_path / "examples.db").find("anything")


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


pytestmark = pytest.mark.anyio

MODULES = Example(title="install a package", text="pip install NAME", code="import requests", source="a.md")
ISO_DATES = Example(title="parse a date", text="ISO 8601", code="datetime.fromisoformat(text)", source="b.md")
QUESTION = "ModuleNotFoundError: No module named 'requests_cache'"


def meaning(text: str) -> list[float]:
    """Two subjects, whatever the words."""
    subjects = [("install", "modulenotfound"), ("date", "isoformat")]
    return [float(any(word in text.lower() for word in subject)) for subject in subjects] + [0.1]


@asynccontextmanager
async def hybrid_examples(folder: Path) -> AsyncGenerator[tuple[HybridExamples, MockServer]]:
    async with serve_mock() as server, HttpClient() as http:
        embedder = Embedder(f"{server.url}/embeddings", "mock", bearer("k"), http)
        yield HybridExamples(FullTextExamples(folder / "examples.db"), embedder, "mock"), server


async def test_what_shares_no_words_is_found_by_its_meaning(tmp_path: Path) -> None:
    async with hybrid_examples(tmp_path) as (examples, server):
        server.embed = meaning
        assert await examples.learn([MODULES, ISO_DATES]) == 2
        assert await FullTextExamples(tmp_path / "examples.db").find(QUESTION) is None
        assert await examples.find(QUESTION) == MODULES
        assert await examples.find("nothing that it knows") is None
        assert await examples.find("") is None


async def test_vectors_are_kept_and_asked_for_once(tmp_path: Path) -> None:
    plain = FullTextExamples(tmp_path / "examples.db")
    await plain.learn([ISO_DATES])
    async with hybrid_examples(tmp_path) as (examples, server):
        await examples.learn([MODULES])
        assert [len(seen.fields["input"]) for seen in server.seen] == [2], "also what was learnt before"  # pyright: ignore[reportArgumentType]  # a list of texts
        await examples.find("parse a date")
        assert len(server.seen) == 2
    kept = sqlite3.connect(tmp_path / "examples.db").execute("SELECT model, length(vector) FROM meanings")
    assert kept.fetchall() == [("mock", 4 * len(bag_of_words("")))] * 2


async def test_words_decide_where_there_are_no_vectors(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with HttpClient() as http:
        nowhere = Embedder("http://127.0.0.1:9/embeddings", "mock", bearer(""), http)
        examples = HybridExamples(FullTextExamples(tmp_path / "examples.db"), nowhere, "mock")
        assert await examples.learn([ISO_DATES]) == 1
        assert await examples.find("parse the date") == ISO_DATES
    assert "examples are found by words only" in caplog.text


async def test_an_answer_without_vectors_is_named(tmp_path: Path) -> None:
    async with serve_mock() as server, HttpClient() as http:
        embed = Embedder(f"{server.url}/chat/completions", "mock", bearer(""), http)
        with pytest.raises(ModelFailed, match="has no vectors"):
            await embed(["text"])


async def test_it_is_off_unless_a_model_for_it_is_named(tmp_path: Path) -> None:
    home = find_home({"SEPTET_HOME": str(tmp_path)})
    async with open_session(home, {}) as session:
        assert isinstance(session.examples, FullTextExamples)
    async with (
        serve_mock() as server,
        open_session(home, {"SEPTET_EMBEDDINGS": f"url:{server.url}#mock"}) as session,
    ):
        await session.examples.learn([ISO_DATES])
        assert await session.examples.find("parse a date") == ISO_DATES
        assert len(server.seen) == 2
    async with open_session(home, {"SEPTET_EMBEDDINGS": "anthropic/x", "ANTHROPIC_API_KEY": "k"}) as session:
        with pytest.raises(BadConfig, match="has no vectors"):
            assert session.examples


@given(st.lists(st.lists(st.sampled_from("abcdef"), unique=True), max_size=3))
def test_a_merged_ranking_holds_everything_once(rankings: list[list[str]]) -> None:
    merged = fuse_rankings(rankings)
    assert sorted(merged) == sorted({one for ranking in rankings for one in ranking})
    if rankings and all(ranking[:1] == ["a"] for ranking in rankings):
        assert merged[0] == "a"


def test_what_ranks_high_in_several_rankings_ranks_highest() -> None:
    assert fuse_rankings([["a", "b", "c"], ["b", "d"]]) == ["b", "a", "d", "c"]
    assert fuse_rankings([["a"], ["b"]]) == ["a", "b"]
    assert fuse_rankings([]) == []
