"""The index over the words of all chats: it follows the log, also where chats go."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.chat.index_file import open_index
from septet.chat.search import SearchIndex, query_of
from septet.domain.events import PersonSpoke
from septet.stores.memory import MemoryStore
from septet.stores.sqlite import open_store

pytestmark = pytest.mark.anyio


async def test_all_words_or_their_beginnings_are_found_the_newest_first() -> None:
    store = MemoryStore()
    for chat, text in (
        ("a", "the red clock"),
        ("b", "a clock of red glass"),
        ("a", "clocks are red"),
        ("b", "a clock"),
    ):
        await store.append(chat, PersonSpoke(text=text), after=None)
    index = SearchIndex(store)
    assert [hit.words for hit in await index.find("RED clo", "newest")] == [
        "clocks are red",
        "a clock of red glass",
        "the red clock",
    ]
    assert [hit.words for hit in await index.find("red clock", "newest", limit=1)] == ["clocks are red"]
    assert await index.find("lock") == []
    await store.append("a", PersonSpoke(text="a red clock again"), after=None)
    assert (await index.find("red clock", "newest"))[0].words == "a red clock again"


async def test_chats_that_are_gone_are_not_found_any_more(tmp_path: Path) -> None:
    async with open_store(tmp_path / "log.db") as store:
        for chat in ("one", "two", "three"):
            await store.append(chat, PersonSpoke(text="red"), after=None)
            await store.append(chat, PersonSpoke(text="and blue"), after=None)
        index = SearchIndex(store)
        assert {hit.chat for hit in await index.find("red")} == {"one", "two", "three"}
        await store.delete("one")
        await store.delete("two")
        await store.append("two", PersonSpoke(text="green"), after=None)
        await store.rename("three", "four")
        assert {hit.chat for hit in await index.find("red")} == {"four"}
        assert {hit.chat for hit in await index.find("green")} == {"two"}


@given(st.text())
def test_any_words_make_a_query_that_the_index_understands(words: str) -> None:
    connection = open_index(None)
    if query := query_of(words):
        assert connection.execute("SELECT * FROM said WHERE said MATCH ?", (query,)).fetchall() == []
    connection.close()
