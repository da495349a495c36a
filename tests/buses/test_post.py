"""Topics and subscriptions of agents: what R43, R45 to R48 and R53 promise."""

import anyio
import msgspec
import pytest
from buses.posting import Heard, joined
from nats.js.manager import JetStreamManager

from septet.cluster.addresses import AgentId, PrefixSubscription, TypeSubscription
from septet.cluster.connection import connect
from septet.cluster.mail import STREAM
from septet.cluster.server import Server
from septet.cluster.topics import Desk, Handlers, open_post, serve_agents
from septet.errors import BadUsage

pytestmark = pytest.mark.anyio


async def test_a_topics_source_is_the_key_of_the_agent(server: Server) -> None:
    heard = Heard()
    async with joined(server) as (post, tasks):
        await tasks.start(serve_agents, post, "writer", heard.make)
        await post.subscribe(TypeSubscription(topic="draft", agent="writer"))

        await post.publish("draft/essay-1", "say", "one")
        await post.publish("draft/essay 2", "say", "two")
        await post.publish("drafts/essay-1", "say", "another type")
        await post.publish("draft/essay-1", "say", "three")

        assert sorted(await heard.wait(3)) == [
            ("writer/essay 2", "two"),
            ("writer/essay-1", "one"),
            ("writer/essay-1", "three"),
        ]


async def test_a_prefix_covers_the_types_that_begin_with_it(server: Server) -> None:
    heard = Heard()
    async with joined(server) as (post, tasks):
        await tasks.start(serve_agents, post, "writer", heard.make)
        await post.subscribe(PrefixSubscription(prefix="dra", agent="writer"))

        await post.publish("report/a", "say", "not this")
        await post.publish("draft/a", "say", "one")
        await post.publish("drawing/a", "say", "two")

        assert await heard.wait(2) == [("writer/a", "one"), ("writer/a", "two")]


async def test_a_recipient_hears_once_however_often_it_is_subscribed(server: Server) -> None:
    heard = Heard()
    async with joined(server) as (post, tasks):
        await tasks.start(serve_agents, post, "writer", heard.make)
        for subscription in (
            TypeSubscription(topic="draft", agent="writer"),
            TypeSubscription(topic="draft", agent="writer"),
            PrefixSubscription(prefix="d", agent="writer"),
        ):
            await post.subscribe(subscription)
        await post.publish("draft/a", "say", 1)
        await post.publish("draft/a", "say", 2)

        assert await heard.wait(2) == [("writer/a", 1), ("writer/a", 2)]


async def test_subscriptions_are_added_listed_and_removed_from_anywhere(server: Server) -> None:
    heard = Heard()
    draft = TypeSubscription(topic="draft", agent="writer")
    notes = PrefixSubscription(prefix="note", agent="writer")
    async with joined(server) as (post, tasks), joined(server) as (elsewhere, _):
        await tasks.start(serve_agents, post, "writer", heard.make)
        await elsewhere.subscribe(draft)
        await elsewhere.subscribe(notes)
        assert sorted(one.id for one in await post.subscriptions()) == sorted([draft.id, notes.id])
        await post.publish("draft/a", "say", "heard")
        await heard.wait(1)

        await elsewhere.unsubscribe(draft.id)
        assert await post.subscriptions() == [notes]
        with pytest.raises(BadUsage, match="no subscription"):
            await post.unsubscribe(draft.id)


async def test_a_sender_does_not_hear_itself(server: Server) -> None:
    heard = Heard()

    def make(agent: AgentId) -> Handlers:
        async def say(data: msgspec.Raw, desk: Desk) -> None:
            words = msgspec.json.decode(data)
            heard.note(agent, words)
            if words == "start":
                await desk.publish("talk/a", "say", f"from {agent.type}")

        return {"say": say}

    async with joined(server) as (post, tasks):
        for kind in ("writer", "editor"):
            await tasks.start(serve_agents, post, kind, make)
            await post.subscribe(TypeSubscription(topic="talk", agent=kind))
        await post.publish("talk/a", "say", "start")
        await heard.wait(4)
        await post.publish("talk/a", "say", "end")

        assert sorted(await heard.wait(6), key=str) == [
            ("editor/a", "end"),
            ("editor/a", "from writer"),
            ("editor/a", "start"),
            ("writer/a", "end"),
            ("writer/a", "from editor"),
            ("writer/a", "start"),
        ]


async def test_what_was_published_before_anybody_subscribed_is_heard_in_order(server: Server) -> None:
    heard = Heard()
    async with joined(server) as (post, tasks):
        for number in range(20):
            await post.publish("draft/a", "say", number)
        await tasks.start(serve_agents, post, "writer", heard.make)
        await post.subscribe(TypeSubscription(topic="draft", agent="writer"))

        assert await heard.wait(20) == [("writer/a", number) for number in range(20)]


async def test_two_processes_share_the_instances_and_each_message_is_handled_once_in_order(
    server: Server,
) -> None:
    heard = Heard()
    async with joined(server) as (here, first), joined(server) as (there, second):
        await first.start(serve_agents, here, "writer", heard.make)
        await second.start(serve_agents, there, "writer", heard.make)
        await here.subscribe(TypeSubscription(topic="draft", agent="writer"))
        for number in range(25):
            for key in "abcd":
                await here.publish(f"draft/{key}", "say", number)

        await heard.wait(100)
    for key in "abcd":
        assert [said for agent, said in heard.notes if agent == f"writer/{key}"] == list(range(25))


async def test_an_instance_handles_one_message_at_a_time_and_instances_work_in_parallel(
    server: Server,
) -> None:
    at_work: set[str] = set()
    together = anyio.Event()
    heard = Heard()

    def make(agent: AgentId) -> Handlers:
        async def say(data: msgspec.Raw, _: Desk) -> None:
            assert agent.key not in at_work
            at_work.add(agent.key)
            if len(at_work) == 2:
                together.set()
            await together.wait()
            at_work.discard(agent.key)
            heard.note(agent, msgspec.json.decode(data))

        return {"say": say}

    async with joined(server) as (post, tasks):
        await tasks.start(serve_agents, post, "writer", make)
        await post.subscribe(TypeSubscription(topic="draft", agent="writer"))
        for number in range(5):
            await post.publish("draft/a", "say", number)
            await post.publish("draft/b", "say", number)

        await heard.wait(10)
        assert not await post.dead_letters()


async def test_an_unknown_message_becomes_a_dead_letter_and_the_next_one_is_handled(server: Server) -> None:
    heard = Heard()
    async with joined(server) as (post, tasks):
        await tasks.start(serve_agents, post, "writer", heard.make)
        await post.subscribe(TypeSubscription(topic="draft", agent="writer"))
        await post.publish("draft/a", "sing", "la")
        await post.publish("draft/a", "say", "words")

        assert await heard.wait(1) == [("writer/a", "words")]
        (letter,) = await post.dead_letters()
        assert (letter.recipient, letter.parcel.type) == ("writer/a", "sing")
        assert "knows no message 'sing'" in letter.reason


async def test_a_handler_that_fails_is_tried_again_then_its_message_is_a_dead_letter(server: Server) -> None:
    heard = Heard()

    def make(agent: AgentId) -> Handlers:
        async def say(data: msgspec.Raw, _: Desk) -> None:
            words = msgspec.json.decode(data)
            heard.note(agent, words)
            if words == "bad":
                raise ValueError("cannot")

        return {"say": say}

    async with joined(server) as (post, tasks):
        await tasks.start(serve_agents, post, "writer", make)
        await post.subscribe(TypeSubscription(topic="draft", agent="writer"))
        await post.publish("draft/a", "say", "bad")
        await post.publish("draft/a", "say", "good")

        assert [said for _, said in await heard.wait(4)] == ["bad", "bad", "bad", "good"]
        (letter,) = await post.dead_letters()
        assert letter.reason == "ValueError: cannot"


async def test_a_message_on_the_wire_is_a_cloud_event(server: Server) -> None:
    async with connect(server.link) as client, open_post(client) as post:
        identity = await post.publish("draft/a", "say", {"text": "hello"}, sender="person/me")
        stored = await JetStreamManager(client).get_last_msg(STREAM, "septet.mail.topic.draft.a")

    fields = msgspec.json.decode(stored.data or b"", type=dict[str, object])
    assert fields["specversion"] == "1.0"
    assert fields["id"] == identity
    assert fields["source"] == "septet/person/me"
    assert fields["type"] == "say"
    assert fields["subject"] == fields["topic"] == "draft/a"
    assert fields["data"] == {"text": "hello"}


async def test_nothing_is_lost_or_handled_twice_over_kills_of_the_server(server: Server) -> None:
    heard = Heard()
    async with joined(server) as (post, tasks):
        await tasks.start(serve_agents, post, "writer", heard.make)
        await post.subscribe(TypeSubscription(topic="draft", agent="writer"))
        for number in range(60):
            await post.publish("draft/a", "say", number)
            if number in (20, 40):
                back = server.back
                server.kill()
                await back.wait()
        await heard.wait(60)

    assert [words for _, words in heard.notes] == list(range(60))


async def test_five_mebibytes_arrive_and_fifty_are_refused_to_the_sender(server: Server) -> None:
    heard = Heard()
    async with joined(server) as (post, tasks):
        await tasks.start(serve_agents, post, "writer", heard.make)
        await post.subscribe(TypeSubscription(topic="draft", agent="writer"))
        with pytest.raises(BadUsage, match="too big"):
            await post.publish("draft/a", "say", "x" * (50 << 20))
        await post.publish("draft/a", "say", "x" * (5 << 20))
        await post.publish("draft/a", "say", "small")

        assert [len(str(said)) for _, said in await heard.wait(2)] == [5 << 20, 5]


async def test_what_is_no_topic_is_refused(server: Server) -> None:
    async with joined(server) as (post, _):
        for topic in ("", "draft", "draft/", "/a", "dr aft/a", "dräft/a"):
            with pytest.raises(BadUsage, match="is no topic"):
                await post.publish(topic, "say", None)
