"""A member spoils a chat, or makes one up: everything else goes on, and the page and the status say what is wrong."""

import json
from pathlib import Path

import anyio
import pytest
from buses.intruding import Scene, forge, have_echoed, intruded, line, say_rudely
from nats.aio.msg import Msg
from nats.js.api import StreamConfig
from nats.js.client import JetStreamContext

from septet.chat.search import Index
from septet.cluster.client import listen
from septet.cluster.conductor import open_line
from septet.cluster.connection import connect
from septet.cluster.presence import seen, signing
from septet.cluster.server import ServerPlan, serve
from septet.cluster.status import standing
from septet.cluster.store import EXPECTED, EXPECTED_OF, open_nats_store
from septet.cluster.stream import message_of, subject_of, whole_chat
from septet.domain.events import ChatStarted, Event, PersonSpoke, Recorded, TurnOpened
from septet.domain.teams import TeamSpec
from septet.errors import BadConfig, LogDamaged
from septet.web.summaries import Shelf
from septet.wiring.cluster import unfinished

pytestmark = pytest.mark.anyio
PATIENCE = 60
TURN = TurnOpened(speaker="coder")
BODIES = {
    "empty": b"",
    "no JSON": b"\xff\xfe",
    "another form": b"{}",
    "another event": line(PersonSpoke(text="x")),
    "empty lines": line(TURN) + b"\n\n" + line(TURN),
    "many lines": b"\n".join([line(TURN)] * 11),
    "an unknown kind": line(TURN).replace(b"septet.turn_opened", b"septet.sudo"),
    "a far version": line(TURN).replace(b'"v":1', b'"v":99'),
    "a deep nest": b"[" * 100_000,
    "a time before all": line(TURN).replace(b'"time":"2023', b'"time":"0001'),
    "a time after all": line(TURN).replace(b'"time":"2023', b'"time":"9999'),
}
PLACES = [
    "septet.log.=FF.t.turn_opened.coder",
    "septet.log.cloc=6B.t.turn_opened.coder",
    "septet.log.=.t.turn_opened.coder",
    "septet.log.===.t.turn_opened.coder",
    "septet.log.=1B[31m.t.turn_opened.coder",
    "septet.log.=2E=2E=2Fup.t.turn_opened.coder",
    "septet.log.\udcff\udcfe.t.turn_opened.coder",
    "septet.log.clöck.t.turn_opened.coder",
]


async def begin(scene: Scene, chat: str) -> Recorded:
    started: Event = ChatStarted(
        goal=f"a {chat}", team=TeamSpec(name="none", members=()), workspace="/nowhere"
    )
    (first,) = await scene.store.append(chat, started, after=0)
    (opened,) = await scene.store.append(chat, TURN, after=first.seq)
    return opened


async def check_the_rest(scene: Scene) -> None:
    """The healthy chat is there for the page, the search and the status, and can be written."""
    for store in (scene.store, await open_nats_store(scene.conductor), await open_nats_store(scene.coder)):
        assert "clock" in [head.chat for head in await store.chats()]
    assert "clock" in [one.chat for one in await Shelf(scene.store).summaries()]
    assert [hit.chat for hit in await Index(scene.store).find("clock")] == ["clock"]
    found = await standing(scene.server.link)
    assert "clock" in [one.chat for one in found.chats]
    last = (await scene.store.read("clock"))[-1]
    await scene.store.append("clock", TURN, after=last.seq)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_a_spoiled_chat_spoils_no_other(tmp_path: Path, body: bytes) -> None:
    async with intruded(tmp_path) as scene:
        await begin(scene, "clock")
        await begin(scene, "victim")
        await forge(scene.coder, TURN, body)

        await check_the_rest(scene)


async def test_a_spoiled_chat_is_shown_as_what_it_is(tmp_path: Path) -> None:
    async with intruded(tmp_path) as scene:
        await begin(scene, "victim")
        await forge(scene.coder, TURN, b"{}")

        (listed,) = await Shelf(scene.store).summaries()
        (told,) = (await standing(scene.server.link)).chats
        with pytest.raises(LogDamaged):
            await scene.store.read("victim")

    assert (listed.chat, listed.phase) == ("victim", "damaged")
    assert "damaged" in told.status


@pytest.mark.parametrize("place", PLACES)
async def test_a_chat_that_is_made_up_spoils_no_other(tmp_path: Path, place: str) -> None:
    async with intruded(tmp_path) as scene:
        await begin(scene, "clock")
        told: list[Msg] = []
        await listen(scene.conductor, "septet.stored.>", told.append)
        await scene.conductor.flush()
        subject = place.encode(errors="surrogateescape")
        for body in (b"{}", line(TURN)):
            await say_rudely(scene, subject, body)

        await check_the_rest(scene)
        assert [one.chat for one in await Shelf(scene.store).summaries()] == ["clock"]


async def test_a_writer_cannot_name_two_events_that_it_follows(tmp_path: Path) -> None:
    """The server compares with the first that is named; who believes the second misses what is in between."""
    async with intruded(tmp_path) as scene:
        first = await begin(scene, "victim")
        (hidden,) = await scene.store.append("victim", PersonSpoke(text="stop that"), after=None)
        headers = b"".join(
            b"%s: %d\r\n" % (EXPECTED.encode(), message_of(seq)) for seq in (hidden.seq, first.seq)
        )
        headers = b"%s: %s\r\n" % (EXPECTED_OF.encode(), whole_chat("victim").encode()) + headers
        told: list[Msg] = []
        await listen(scene.conductor, "septet.stored.>", told.append)
        await scene.conductor.flush()
        await say_rudely(scene, subject_of("victim", [TURN], fenced=True).encode(), line(TURN), headers)
        await scene.store.read("victim")

        seen = await scene.store.read_to("victim", first.seq, told[-1])
        assert hidden in seen


async def test_a_log_with_settings_that_lose_events_is_refused(tmp_path: Path) -> None:
    async with serve(ServerPlan(folder=tmp_path)) as server, connect(server.link) as client:
        config = StreamConfig(name="SEPTET_LOG", subjects=["septet.log.>"], max_msgs=10)
        await JetStreamContext(client).add_stream(config)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        with pytest.raises(BadConfig, match="SEPTET_LOG"):
            await open_nats_store(client)


async def test_what_another_chat_holds_is_not_taken_for_news_of_this_one(tmp_path: Path) -> None:
    """A member can have the server answer to those who wait for a turn, with a message of another chat."""
    async with intruded(tmp_path) as scene:
        await begin(scene, "victim")
        told: list[Msg] = []
        await listen(scene.coder, "septet.stored.*.t.turn_opened.coder", told.append)
        await have_echoed(scene.coder, line(TURN), "septet.stored.victim.t.turn_opened.coder")
        assert told

        seen = await scene.store.read_to("victim", 0, told[-1])
        assert seen == await scene.store.read("victim")


async def test_a_member_cannot_pass_for_a_conductor(tmp_path: Path) -> None:
    """Who is said to conduct a chat keeps others from it, and who is said to have died with one hands it over."""
    async with intruded(tmp_path) as scene:
        for kind, chats in (("conductor", ("victim",)), ("member", ("victim",)), ("conductor", ())):
            sign = {"kind": kind, "name": "me", "machine": "here", "pid": 1 << 70, "since": 0, "chats": chats}
            subject = f"$KV.septet-presence.member.coder.{kind}{len(chats)}"
            await scene.coder.request(subject, json.dumps(sign).encode(), timeout=5)
        async with signing(scene.coder, "member", "honest", ("coder",)):
            await scene.coder.flush()
            people = await seen(scene.conductor)

    assert [one.presence.name for one in people] == ["honest"]


async def test_what_is_said_a_million_times_is_heard_once(tmp_path: Path) -> None:
    """Else one who says nothing at all, very often, would keep the chat's next events waiting for hours."""
    async with intruded(tmp_path) as scene:
        opened = await begin(scene, "victim")
        async with open_line(scene.conductor, scene.store, "victim", opened.seq) as line_of_chat:
            for _ in range(2000):
                await scene.coder.publish("septet.said.victim", b"")
                await scene.coder.publish("septet.said.victim", b'{"type":"beat"}')
            await scene.coder.flush()
            await scene.conductor.flush()
            (stored,) = await scene.store.append("victim", PersonSpoke(text="go on"), after=None)
            heard: list[object] = []
            with anyio.fail_after(PATIENCE):
                # What is said comes in its own time: once this has come, by the same connection, all of it has.
                await anext(aiter(scene.store.watch("victim", opened.seq)))
                while stored not in heard:
                    heard.append(await line_of_chat.next(PATIENCE))

    assert len(heard) <= 6


async def test_a_damaged_chat_is_not_taken_over_and_keeps_nobody_from_the_others(tmp_path: Path) -> None:
    async with intruded(tmp_path) as scene:
        for chat in ("clock", "victim"):
            await begin(scene, chat)
        await forge(scene.coder, TURN, b"{}")

        assert await unfinished(scene.store, ["victim", "clock"]) == ["clock"]
