"""What the ChatCatalog port promises, of every store that can rename and delete chats."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from ports.chats import STARTED, begin, conduct, events, fresh, spoke, turn

from septet.errors import Conflict
from septet.stores.memory import MemoryStore
from septet.stores.sqlite import SqliteStore, open_store

pytestmark = pytest.mark.anyio
LocalStore = MemoryStore | SqliteStore


@pytest.fixture(params=["memory", "sqlite"])
async def local(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[LocalStore]:
    if request.param == "memory":
        yield MemoryStore()
        return
    async with open_store(tmp_path / "log.db") as store:
        yield store


async def test_a_renamed_chat_has_its_events_under_the_new_name_only(local: LocalStore) -> None:
    old, new = fresh(), fresh()
    await conduct(local, old, await begin(local, old), 2)
    before = await local.read(old)
    await local.rename(old, new)
    after = await local.read(new)
    assert events(after) == events(before)
    assert [(one.seq, one.at) for one in after] == [(one.seq, one.at) for one in before]
    assert {one.chat for one in after} == {new}
    assert list(await local.read(old)) == []
    assert [head.chat for head in await local.chats()] == [new]


async def test_a_renamed_chat_goes_on_under_its_new_name(local: LocalStore) -> None:
    old, new = fresh(), fresh()
    seen = await begin(local, old)
    await local.rename(old, new)
    (recorded,) = await local.append(new, turn("coder"), seen)
    assert recorded.chat == new
    assert events(await local.read(new)) == [STARTED, turn("coder")]


async def test_a_name_that_is_taken_is_refused_and_both_chats_stay(local: LocalStore) -> None:
    one, other = fresh(), fresh()
    await begin(local, one)
    await conduct(local, other, await begin(local, other), 1)
    with pytest.raises(Conflict, match="exists already"):
        await local.rename(one, other)
    assert len(await local.read(one)) == 1
    assert len(await local.read(other)) == 2


async def test_a_chat_that_is_not_there_cannot_be_renamed(local: LocalStore) -> None:
    with pytest.raises(Conflict, match="there is no chat"):
        await local.rename(fresh(), fresh())
    assert list(await local.chats()) == []


async def test_a_deleted_chat_is_gone_and_the_others_stay(local: LocalStore) -> None:
    gone, stays = fresh(), fresh()
    await begin(local, gone)
    await begin(local, stays)
    await local.delete(gone)
    assert list(await local.read(gone)) == []
    assert [head.chat for head in await local.chats()] == [stays]
    await local.delete(gone)  # again: nothing happens


async def test_the_name_of_a_deleted_chat_can_be_used_again(local: LocalStore) -> None:
    chat = fresh()
    await conduct(local, chat, await begin(local, chat), 3)
    await local.delete(chat)
    assert await begin(local, chat) == 1
    assert events(await local.read(chat)) == [STARTED]


@pytest.mark.parametrize("change", ["rename", "delete"])
async def test_a_conductor_at_work_meets_a_conflict(local: LocalStore, change: str) -> None:
    chat = fresh()
    seen = await conduct(local, chat, await begin(local, chat), 1)
    await local.append(chat, spoke("hello"), after=None)
    await (local.rename(chat, fresh()) if change == "rename" else local.delete(chat))
    with pytest.raises(Conflict):
        await local.append(chat, turn("coder"), seen)
