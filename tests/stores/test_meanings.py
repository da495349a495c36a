"""Examples found by words and by meaning, over a real server of vectors."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.domain.examples import Example
from septet.errors import BadConfig, ModelFailed
from septet.models.credentials import bearer
from septet.models.embeddings import Embedder
from septet.models.http import Wire
from septet.settings.home import find_home
from septet.stores.examples import ExampleShelf, MeaningShelf, fused
from septet.testing.replies import bag_of_words
from septet.testing.server import MockServer, serving
from septet.wiring.session import open_session

pytestmark = pytest.mark.anyio

MODULES = Example(title="install a package", text="pip install NAME", code="import requests", source="a.md")
DATES = Example(title="parse a date", text="ISO 8601", code="datetime.fromisoformat(text)", source="b.md")
QUESTION = "ModuleNotFoundError: No module named 'requests_cache'"


def meaning(text: str) -> list[float]:
    """Two subjects, whatever the words."""
    subjects = [("install", "modulenotfound"), ("date", "isoformat")]
    return [float(any(word in text.lower() for word in subject)) for subject in subjects] + [0.1]


@asynccontextmanager
async def shelf_on(folder: Path) -> AsyncGenerator[tuple[MeaningShelf, MockServer]]:
    async with serving() as server, Wire() as wire:
        embedder = Embedder(f"{server.url}/embeddings", "mock", bearer("k"), wire)
        yield MeaningShelf(ExampleShelf(folder / "examples.db"), embedder, "mock"), server


async def test_what_shares_no_words_is_found_by_its_meaning(tmp_path: Path) -> None:
    async with shelf_on(tmp_path) as (shelf, server):
        server.embed = meaning
        assert await shelf.learn([MODULES, DATES]) == 2
        assert await ExampleShelf(tmp_path / "examples.db").find(QUESTION) is None
        assert await shelf.find(QUESTION) == MODULES
        assert await shelf.find("nothing that it knows") is None
        assert await shelf.find("") is None


async def test_vectors_are_kept_and_asked_for_once(tmp_path: Path) -> None:
    plain = ExampleShelf(tmp_path / "examples.db")
    await plain.learn([DATES])
    async with shelf_on(tmp_path) as (shelf, server):
        await shelf.learn([MODULES])
        assert [len(seen.fields["input"]) for seen in server.seen] == [2], "also what was learnt before"  # pyright: ignore[reportArgumentType]  # a list of texts
        await shelf.find("parse a date")
        assert len(server.seen) == 2
    kept = sqlite3.connect(tmp_path / "examples.db").execute("SELECT model, length(vector) FROM meanings")
    assert kept.fetchall() == [("mock", 4 * len(bag_of_words("")))] * 2


async def test_words_decide_where_there_are_no_vectors(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Wire() as wire:
        nowhere = Embedder("http://127.0.0.1:9/embeddings", "mock", bearer(""), wire)
        shelf = MeaningShelf(ExampleShelf(tmp_path / "examples.db"), nowhere, "mock")
        assert await shelf.learn([DATES]) == 1
        assert await shelf.find("parse the date") == DATES
    assert "examples are found by words only" in caplog.text


async def test_an_answer_without_vectors_is_named(tmp_path: Path) -> None:
    async with serving() as server, Wire() as wire:
        embed = Embedder(f"{server.url}/chat/completions", "mock", bearer(""), wire)
        with pytest.raises(ModelFailed, match="holds no vectors"):
            await embed(["text"])


async def test_it_is_off_unless_a_model_for_it_is_named(tmp_path: Path) -> None:
    home = find_home({"SEPTET_HOME": str(tmp_path)})
    async with open_session(home, {}) as session:
        assert isinstance(session.examples, ExampleShelf)
    async with (
        serving() as server,
        open_session(home, {"SEPTET_EMBEDDINGS": f"url:{server.url}#mock"}) as session,
    ):
        await session.examples.learn([DATES])
        assert await session.examples.find("parse a date") == DATES
        assert len(server.seen) == 2
    async with open_session(home, {"SEPTET_EMBEDDINGS": "anthropic/x", "ANTHROPIC_API_KEY": "k"}) as session:
        with pytest.raises(BadConfig, match="has no vectors"):
            assert session.examples


@given(st.lists(st.lists(st.sampled_from("abcdef"), unique=True), max_size=3))
def test_a_merged_ranking_holds_everything_once(rankings: list[list[str]]) -> None:
    merged = fused(rankings)
    assert sorted(merged) == sorted({one for ranking in rankings for one in ranking})
    if rankings and all(ranking[:1] == ["a"] for ranking in rankings):
        assert merged[0] == "a"
