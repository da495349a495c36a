"""Lists of chats, and the file that keeps what they show."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from team.states import PLAN, STARTED, ran, reviewed, version

from septet.chat.index_file import IndexFile, forget_chat, open_index
from septet.chat.search import BEST, NEWEST, SHOW, SearchIndex
from septet.chat.summaries import Summaries, damaged_summary
from septet.domain.events import ChatStarted, PersonSpoke, PlanApproved, PlanProposed, Recorded
from septet.domain.plans import Plan, Requirement, plan_digest
from septet.domain.teams import TeamSpec
from septet.errors import LogDamaged
from septet.ports import ChatHead
from septet.stores.memory import MemoryStore
from septet.stores.sqlite import CHANGED, EVENTS, HEAD, HEADS, open_store, open_writer
from septet.stores.sqlite import NEWEST as NEWEST_EVENT

pytestmark = pytest.mark.anyio


TEAM = TeamSpec(name="pair", members=())


class CountingStore(MemoryStore):
    """Counts the events that are read."""

    events_read = 0

    async def read(self, chat: str, after: int = 0) -> Sequence[Recorded]:
        events = await super().read(chat, after)
        self.events_read += len(events)
        return events


@pytest.fixture
async def store() -> CountingStore:
    store = CountingStore()
    for number in range(30):
        chat = f"chat-{number}"
        await store.append(chat, ChatStarted(goal=f"goal {number}", team=TEAM, workspace="/w"), after=0)
        for _ in range(9):
            await store.append(chat, PersonSpoke(text=f"words of {chat}"), after=None)
    return store


@pytest.fixture
def index(tmp_path: Path) -> Iterator[IndexFile]:
    index = IndexFile(tmp_path / "cache" / "index.db")
    yield index
    index.close()


async def test_a_page_of_the_list_reads_its_own_chats_once(store: CountingStore, index: IndexFile) -> None:
    summaries = Summaries(store, index)
    newest = await summaries.newest(5)
    assert [(one.chat, one.goal, one.phase) for one in newest] == [
        (f"chat-{number}", f"goal {number}", "going") for number in range(29, 24, -1)
    ]
    assert store.events_read == 50
    assert await summaries.newest(5) == newest
    assert await Summaries(store, index).newest(5) == newest, "another process has it from the file"
    assert store.events_read == 50
    await store.append("chat-27", PersonSpoke(text="more"), after=None)
    assert [one.chat for one in await summaries.newest(3)] == ["chat-27", "chat-29", "chat-28"]
    assert store.events_read == 51, "a chat that goes on is not read from its beginning"
    assert len(await summaries.newest()) == 30


async def test_another_chat_of_the_same_name_gets_a_summary_of_its_own(
    tmp_path: Path, index: IndexFile
) -> None:
    async with open_store(tmp_path / "log.db") as store:
        for goal in ("the first", "the second"):
            await store.append("one", ChatStarted(goal=goal, team=TEAM, workspace="/w"), after=0)
            assert [one.goal for one in await Summaries(store, index).newest()] == [goal]
            await store.delete("one")


async def test_a_search_reads_only_what_is_new(store: CountingStore, index: IndexFile) -> None:
    assert len(await SearchIndex(store, index).find("words", limit=500)) == 270
    assert store.events_read == 300
    await store.append("chat-3", PersonSpoke(text="brand new words"), after=None)
    search = SearchIndex(store, index)
    assert [hit.chat for hit in await search.find("words", "newest", 2)] == ["chat-3", "chat-29"]
    assert [hit.words for hit in await search.find("brand")] == ["brand new words"]
    assert store.events_read == 301


async def test_what_is_forgotten_leaves_no_words_in_the_file(
    store: CountingStore, index: IndexFile, tmp_path: Path
) -> None:
    await store.append("secret", PersonSpoke(text="xyzzyplugh"), after=None)
    await SearchIndex(store, index).find("words")
    await index.use(lambda file: forget_chat(file, "secret"))
    index.close()
    (file,) = (tmp_path / "cache").iterdir()
    assert b"xyzzy" not in file.read_bytes()
    assert len(await SearchIndex(store, index).find("words", limit=500)) == 270


@pytest.mark.parametrize("content", [b"no database " * 100, b""], ids=["damaged", "empty"])
async def test_a_damaged_file_is_made_anew(store: CountingStore, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "index.db"
    file.write_bytes(content)
    for _ in range(2):
        index = IndexFile(file)
        assert len(await Summaries(store, index).newest()) == 30
        assert len(await SearchIndex(store, index).find("words", limit=500)) == 270
        index.close()
    assert store.events_read == 600, "the second time all came from the file"


async def test_a_file_of_another_layout_is_made_anew(store: CountingStore, tmp_path: Path) -> None:
    file = tmp_path / "index.db"
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE summaries (something)")
        other.execute("PRAGMA user_version = 999")
    other.close()
    index = IndexFile(file)
    assert len(await Summaries(store, index).newest()) == 30
    index.close()


async def test_where_nothing_can_be_written_the_list_is_still_right(
    store: CountingStore, tmp_path: Path
) -> None:
    (tmp_path / "a file").write_text("in the way of the folder")
    index = IndexFile(tmp_path / "a file" / "index.db")
    assert len(await Summaries(store, index).newest()) == 30
    assert len(await SearchIndex(store, index).find("words", limit=500)) == 270
    index.close()


def steps(connection: sqlite3.Connection, query: str, values: Sequence[object]) -> list[str]:
    return [step[3] for step in connection.execute(f"EXPLAIN QUERY PLAN {query}", values)]


LOG_QUERIES: dict[str, tuple[object, ...]] = {
    HEAD: ("chat",),
    HEADS: (100,),
    EVENTS: ("chat", 0),
    CHANGED: (1, 2),
    NEWEST_EVENT: (),
}
INDEX_QUERIES: dict[str, tuple[object, ...]] = {
    NEWEST: ("words", 50),
    BEST: ("words", 50),
    SHOW: ("words", 1),
}


def test_no_query_scans_a_table_or_sorts_it(tmp_path: Path) -> None:
    """How long a query takes must not depend on the number of chats: each goes by an index, in the index's order."""
    log, index = open_writer(tmp_path / "log.db", 1.0), open_index(None)
    plans = {query: steps(log, query, values) for query, values in LOG_QUERIES.items()}
    plans |= {query: steps(index, query, values) for query, values in INDEX_QUERIES.items()}
    log.close()
    index.close()
    for query, plan in plans.items():
        scans = [step for step in plan if step.startswith("SCAN") and "INDEX" not in step]
        sorts = [step for step in plan if "B-TREE FOR ORDER BY" in step and query != BEST]
        assert not scans + sorts, (query, plan)


async def test_a_judged_requirement_is_met_by_acceptance_in_the_list_too() -> None:
    store, plan = MemoryStore(), Plan(items=(*PLAN.items, Requirement(id="P3", text="is short")))
    done = [*version(1, "a"), *ran(1, "a", green=True), *reviewed(1, accept=True)]
    for event in (STARTED, PlanProposed(plan=plan), PlanApproved(plan=plan_digest(plan)), *done):
        await store.append("add", event, after=None)
    (listed,) = await Summaries(store).newest()
    assert (listed.met, listed.items) == (3, 3)


def test_a_chat_that_cannot_be_read_is_listed_as_damaged() -> None:
    head = ChatHead(chat="c", seq=7, started=1.0, changed=2.0)
    listed = damaged_summary(head, LogDamaged("the log of 'c' is damaged", "restore it"))
    assert (listed.chat, listed.goal, listed.phase, listed.seq) == ("c", "c", "damaged", 7)
    assert (listed.status, listed.detail, listed.reason) == (*["the log of 'c' is damaged"] * 2, "damaged")
    assert (listed.versions, listed.met, listed.items) == (0, 0, 0)
    assert (listed.started, listed.changed) == (1.0, 2.0)


class DamagedStore(MemoryStore):
    async def read(self, chat: str, after: int = 0) -> Sequence[Recorded]:
        if chat == "bad":
            raise LogDamaged("the log of 'bad' is damaged", "restore it")
        return await super().read(chat, after)


async def test_a_list_with_a_damaged_chat_shows_the_others_and_says_which_one_it_is() -> None:
    store = DamagedStore()
    for chat in ("good", "bad"):
        await store.append(chat, ChatStarted(goal="g", team=TEAM, workspace="/w"), after=0)
    listed = await Summaries(store).newest()
    assert [(one.chat, one.phase) for one in listed] == [("bad", "damaged"), ("good", "going")]


async def test_a_search_for_nothing_finds_nothing(store: CountingStore, index: IndexFile) -> None:
    assert await SearchIndex(store, index).find(" ") == []
