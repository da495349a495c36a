"""Messages between agents on many machines: topics, subscriptions, direct requests, dead letters."""

from collections.abc import Awaitable, Callable

import anyio
import msgspec
import pytest
from cluster.topic_agents import Heard, joined
from nats.js.manager import JetStreamManager

from septet.cluster import messages
from septet.cluster.connection import connect_nats
from septet.cluster.messages import STREAM, AgentId, PrefixSubscription, TypeSubscription
from septet.cluster.server import NatsServer
from septet.cluster.topics import AgentFactory, HandlerContext, Handlers, open_topic_client, serve_agents
from septet.errors import BadUsage, RemoteFailed, Unreachable

pytestmark = pytest.mark.anyio


async def test_a_topics_source_is_the_key_of_the_agent(server: NatsServer) -> None:
    heard = Heard()
    async with joined(server) as (topics, tasks):
        await tasks.start(serve_agents, topics, "writer", heard.make)
        await topics.subscribe(TypeSubscription(topic="draft", agent="writer"))

        await topics.publish("draft/essay-1", "say", "one")
        await topics.publish("draft/essay 2", "say", "two")
        await topics.publish("drafts/essay-1", "say", "another type")
        await topics.publish("draft/essay-1", "say", "three")

        assert sorted(await heard.wait(3)) == [
            ("writer/essay 2", "two"),
            ("writer/essay-1", "one"),
            ("writer/essay-1", "three"),
        ]


async def test_a_prefix_covers_the_types_that_begin_with_it(server: NatsServer) -> None:
    heard = Heard()
    async with joined(server) as (topics, tasks):
        await tasks.start(serve_agents, topics, "writer", heard.make)
        await topics.subscribe(PrefixSubscription(prefix="dra", agent="writer"))

        await topics.publish("report/a", "say", "not this")
        await topics.publish("draft/a", "say", "one")
        await topics.publish("drawing/a", "say", "two")

        assert await heard.wait(2) == [("writer/a", "one"), ("writer/a", "two")]


async def test_a_recipient_hears_once_however_often_it_is_subscribed(server: NatsServer) -> None:
    heard = Heard()
    async with joined(server) as (topics, tasks):
        await tasks.start(serve_agents, topics, "writer", heard.make)
        for subscription in (
            TypeSubscription(topic="draft", agent="writer"),
            TypeSubscription(topic="draft", agent="writer"),
            PrefixSubscription(prefix="d", agent="writer"),
        ):
            await topics.subscribe(subscription)
        await topics.publish("draft/a", "say", 1)
        await topics.publish("draft/a", "say", 2)

        assert await heard.wait(2) == [("writer/a", 1), ("writer/a", 2)]


async def test_subscriptions_are_added_listed_and_removed_from_anywhere(server: NatsServer) -> None:
    heard = Heard()
    draft = TypeSubscription(topic="draft", agent="writer")
    notes = PrefixSubscription(prefix="note", agent="writer")
    async with joined(server) as (topics, tasks), joined(server) as (elsewhere, _):
        await tasks.start(serve_agents, topics, "writer", heard.make)
        await elsewhere.subscribe(draft)
        await elsewhere.subscribe(notes)
        assert sorted(one.id for one in await topics.subscriptions()) == sorted([draft.id, notes.id])
        await topics.publish("draft/a", "say", "heard")
        await heard.wait(1)

        await elsewhere.unsubscribe(draft.id)
        assert await topics.subscriptions() == [notes]
        with pytest.raises(BadUsage, match="no subscription"):
            await topics.unsubscribe(draft.id)


async def test_a_sender_does_not_hear_itself(server: NatsServer) -> None:
    heard = Heard()

    def make(agent: AgentId) -> Handlers:
        async def say(data: msgspec.Raw, desk: HandlerContext) -> None:
            words = msgspec.json.decode(data)
            heard.note(agent, words)
            if words == "start":
                await desk.publish("talk/a", "say", f"from {agent.type}")

        return {"say": say}

    async with joined(server) as (topics, tasks):
        for kind in ("writer", "editor"):
            await tasks.start(serve_agents, topics, kind, make)
            await topics.subscribe(TypeSubscription(topic="talk", agent=kind))
        await topics.publish("talk/a", "say", "start")
        await heard.wait(4)
        await topics.publish("talk/a", "say", "end")

        assert sorted(await heard.wait(6), key=str) == [
            ("editor/a", "end"),
            ("editor/a", "from writer"),
            ("editor/a", "start"),
            ("writer/a", "end"),
            ("writer/a", "from editor"),
            ("writer/a", "start"),
        ]


async def test_what_was_published_before_anybody_subscribed_is_heard_in_order(server: NatsServer) -> None:
    heard = Heard()
    async with joined(server) as (topics, tasks):
        for number in range(20):
            await topics.publish("draft/a", "say", number)
        await tasks.start(serve_agents, topics, "writer", heard.make)
        await topics.subscribe(TypeSubscription(topic="draft", agent="writer"))

        assert await heard.wait(20) == [("writer/a", number) for number in range(20)]


async def test_two_processes_share_the_instances_and_each_message_is_handled_once_in_order(
    server: NatsServer,
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
    server: NatsServer,
) -> None:
    at_work: set[str] = set()
    together = anyio.Event()
    heard = Heard()

    def make(agent: AgentId) -> Handlers:
        async def say(data: msgspec.Raw, _: HandlerContext) -> None:
            assert agent.key not in at_work
            at_work.add(agent.key)
            if len(at_work) == 2:
                together.set()
            await together.wait()
            at_work.discard(agent.key)
            heard.note(agent, msgspec.json.decode(data))

        return {"say": say}

    async with joined(server) as (topics, tasks):
        await tasks.start(serve_agents, topics, "writer", make)
        await topics.subscribe(TypeSubscription(topic="draft", agent="writer"))
        for number in range(5):
            await topics.publish("draft/a", "say", number)
            await topics.publish("draft/b", "say", number)

        await heard.wait(10)
        assert not await topics.dead_letters()


async def test_an_unknown_message_becomes_a_dead_letter_and_the_next_one_is_handled(
    server: NatsServer,
) -> None:
    heard = Heard()
    async with joined(server) as (topics, tasks):
        await tasks.start(serve_agents, topics, "writer", heard.make)
        await topics.subscribe(TypeSubscription(topic="draft", agent="writer"))
        await topics.publish("draft/a", "sing", "la")
        await topics.publish("draft/a", "say", "words")

        assert await heard.wait(1) == [("writer/a", "words")]
        (letter,) = await topics.dead_letters()
        assert (letter.recipient, letter.envelope.type) == ("writer/a", "sing")
        assert "has no handler for 'sing'" in letter.reason


async def test_a_handler_that_fails_is_tried_again_then_its_message_is_a_dead_letter(
    server: NatsServer,
) -> None:
    heard = Heard()

    def make(agent: AgentId) -> Handlers:
        async def say(data: msgspec.Raw, _: HandlerContext) -> None:
            words = msgspec.json.decode(data)
            heard.note(agent, words)
            if words == "bad":
                raise ValueError("cannot")

        return {"say": say}

    async with joined(server) as (topics, tasks):
        await tasks.start(serve_agents, topics, "writer", make)
        await topics.subscribe(TypeSubscription(topic="draft", agent="writer"))
        await topics.publish("draft/a", "say", "bad")
        await topics.publish("draft/a", "say", "good")

        assert [said for _, said in await heard.wait(4)] == ["bad", "bad", "bad", "good"]
        (letter,) = await topics.dead_letters()
        assert letter.reason == "ValueError: cannot"


async def test_a_message_on_the_wire_is_a_cloud_event(server: NatsServer) -> None:
    async with connect_nats(server.endpoint) as client, open_topic_client(client) as topics:
        identity = await topics.publish("draft/a", "say", {"text": "hello"}, sender="person/me")
        stored = await JetStreamManager(client).get_last_msg(STREAM, "septet.mail.topic.draft.a")

    fields = msgspec.json.decode(stored.data or b"", type=dict[str, object])
    assert fields["specversion"] == "1.0"
    assert fields["id"] == identity
    assert fields["source"] == "septet/person/me"
    assert fields["type"] == "say"
    assert fields["subject"] == fields["topic"] == "draft/a"
    assert fields["data"] == {"text": "hello"}


async def test_nothing_is_lost_or_handled_twice_over_kills_of_the_server(server: NatsServer) -> None:
    heard = Heard()
    async with joined(server) as (topics, tasks):
        await tasks.start(serve_agents, topics, "writer", heard.make)
        await topics.subscribe(TypeSubscription(topic="draft", agent="writer"))
        for number in range(60):
            await topics.publish("draft/a", "say", number)
            if number in (20, 40):
                back = server.restarted
                server.kill()
                await back.wait()
        await heard.wait(60)

    assert [words for _, words in heard.notes] == list(range(60))


async def test_five_mebibytes_arrive_and_fifty_are_refused_to_the_sender(server: NatsServer) -> None:
    heard = Heard()
    async with joined(server) as (topics, tasks):
        await tasks.start(serve_agents, topics, "writer", heard.make)
        await topics.subscribe(TypeSubscription(topic="draft", agent="writer"))
        with pytest.raises(BadUsage, match="too big"):
            await topics.publish("draft/a", "say", "x" * (50 << 20))
        await topics.publish("draft/a", "say", "x" * (5 << 20))
        await topics.publish("draft/a", "say", "small")

        assert [len(str(said)) for _, said in await heard.wait(2)] == [5 << 20, 5]


async def test_what_is_no_topic_is_refused(server: NatsServer) -> None:
    async with joined(server) as (topics, _):
        for topic in ("", "draft", "draft/", "/a", "dr aft/a", "dräft/a"):
            with pytest.raises(BadUsage, match="is not a topic"):
                await topics.publish(topic, "say", None)


pytestmark = pytest.mark.anyio


def answering(reply: Callable[[object, HandlerContext], Awaitable[object]]) -> AgentFactory:
    """Agents that answer `ask`."""

    async def ask(data: msgspec.Raw, desk: HandlerContext) -> object:
        return await reply(msgspec.json.decode(data), desk)

    return lambda _: {"ask": ask}


async def test_a_request_is_answered_from_another_process(server: NatsServer) -> None:
    async def double(number: object, _: HandlerContext) -> object:
        assert isinstance(number, int)
        return 2 * number

    async with joined(server) as (topics, _), joined(server) as (elsewhere, tasks):
        await tasks.start(serve_agents, elsewhere, "doubler", answering(double))

        assert [bytes(await topics.request("doubler/x", "ask", n)) for n in range(3)] == [b"0", b"2", b"4"]


async def test_a_remote_error_comes_back_with_type_and_text(server: NatsServer) -> None:
    async def fail(_: object, __: HandlerContext) -> object:
        raise KeyError("no such page")

    async with joined(server) as (topics, tasks):
        await tasks.start(serve_agents, topics, "reader", answering(fail))

        with pytest.raises(RemoteFailed, match="KeyError: 'no such page'"):
            await topics.request("reader/x", "ask", None)
        with pytest.raises(RemoteFailed, match="UnknownMessage"):
            await topics.request("reader/x", "sing", None)


async def test_an_unknown_recipient_is_said_without_waiting_for_the_deadline(server: NatsServer) -> None:
    async with joined(server) as (topics, _):
        with anyio.fail_after(120), pytest.raises(Unreachable, match="no agent of type 'nobody'"):
            await topics.request("nobody/x", "ask", None, deadline=600)


async def test_a_request_ends_at_its_deadline_and_the_agent_lives_on(server: NatsServer) -> None:
    slow = anyio.Event()

    async def wait(words: object, _: HandlerContext) -> object:
        if words == "wait":
            await slow.wait()
        return words

    async with joined(server) as (topics, tasks):
        await tasks.start(serve_agents, topics, "sleeper", answering(wait))
        with pytest.raises(Unreachable, match=r"did not answer in 0\.3 s"):
            await topics.request("sleeper/x", "ask", "wait", deadline=0.3)
        slow.set()

        assert await topics.request("sleeper/x", "ask", "now") == msgspec.Raw(b'"now"')


async def test_requests_nest_also_back_to_one_who_waits(server: NatsServer) -> None:
    async def relay(words: object, desk: HandlerContext) -> object:
        path, me = msgspec.convert(words, list[str]), str(desk.agent)
        if not path:
            return [me]
        rest = msgspec.json.decode(await desk.request(path[0], "ask", path[1:]), type=list[str])
        return [me, *rest]

    async with joined(server) as (topics, tasks), joined(server) as (elsewhere, others):
        await tasks.start(serve_agents, topics, "a", answering(relay))
        await others.start(serve_agents, elsewhere, "b", answering(relay))

        answer = await topics.request("a/1", "ask", ["b/1", "a/2", "b/1", "a/1"])

    assert msgspec.json.decode(answer) == ["a/1", "b/1", "a/2", "b/1", "a/1"]


async def test_requests_made_while_nobody_serves_are_answered_when_somebody_does(server: NatsServer) -> None:
    async def echo(words: object, _: HandlerContext) -> object:
        return words

    answers: list[object] = []
    async with joined(server) as (topics, callers):
        async with joined(server) as (elsewhere, tasks):
            await tasks.start(serve_agents, elsewhere, "echo", answering(echo))

        async def call(number: int) -> None:
            answers.append(msgspec.json.decode(await topics.request(f"echo/{number % 3}", "ask", number)))

        async with anyio.create_task_group() as waiting:
            for number in range(20):
                waiting.start_soon(call, number)
            await anyio.wait_all_tasks_blocked()
            await callers.start(serve_agents, topics, "echo", answering(echo))

    assert sorted(answers, key=str) == sorted(range(20), key=str)


async def test_a_queue_that_nobody_opens_any_more_goes_away(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "QUEUE_MAX_AGE", 0.5)

    async def agree(_: object, __: HandlerContext) -> object:
        return True

    gone = anyio.Event()

    async with joined(server) as (topics, _):
        await topics.nats.listen(
            f"$JS.EVENT.ADVISORY.CONSUMER.DELETED.{messages.STREAM}.*", lambda _: gone.set()
        )
        async with joined(server) as (elsewhere, tasks):
            await tasks.start(serve_agents, elsewhere, "passing", answering(agree))
            await topics.request("passing/through", "ask", None)
        with anyio.fail_after(120):
            await gone.wait()
        left = await JetStreamManager(topics.nats).consumers_info(messages.STREAM)

    assert not [one.name for one in left if "passing" in one.name]
