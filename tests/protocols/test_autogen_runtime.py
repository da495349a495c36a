"""AutoGen's runtime on the cluster: the contract of `autogen_core.AgentRuntime`, over one or several processes."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest
from autogen_core import (
    AgentId,
    AgentRuntime,
    CancellationToken,
    DefaultTopicId,
    MessageContext,
    RoutedAgent,
    TopicId,
    TypePrefixSubscription,
    TypeSubscription,
    UnknownPayload,
    default_subscription,
    message_handler,
    try_get_known_serializers_for_type,
)
from autogen_core.exceptions import (
    NotAccessibleError,
    UndeliverableException,
)
from protocols.autogen_agents import (
    Answer,
    DefaultListener,
    Heard,
    Listener,
    Oracle,
    Question,
    Word,
    address_of,
    started,
    until,
)

from septet.autogen import RemoteError, Runtime
from septet.cluster.server import NatsServer, ServerConfig, serve

pytestmark = pytest.mark.anyio
ORACLE = AgentId("oracle", "delphi")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[NatsServer]:
    async with serve(ServerConfig(folder=tmp_path / "nats")) as running:
        yield running


async def test_it_is_an_agent_runtime(server: NatsServer) -> None:
    async with started(server) as runtime:
        assert isinstance(runtime, AgentRuntime)


async def test_an_answer_comes_back_from_another_process(server: NatsServer) -> None:
    async with started(server) as here, started(server) as there:
        await Oracle.register(there, "oracle", Oracle)
        here.add_message_serializer(try_get_known_serializers_for_type(Answer))

        assert await here.send_message(Question(21), ORACLE) == Answer(number=42, by="oracle/delphi")


async def test_an_answer_of_an_unknown_type_is_an_unknown_payload(server: NatsServer) -> None:
    async with started(server) as here, started(server) as there:
        await Oracle.register(there, "oracle", Oracle)
        answer = await here.send_message(Question(21), ORACLE)

        assert isinstance(answer, UnknownPayload)
        assert (answer.type_name, answer.payload) == ("Answer", b'{"number":42,"by":"oracle/delphi"}')


async def test_an_error_comes_back_with_its_type_and_text(server: NatsServer) -> None:
    class OwnError(Exception):
        pass

    class Failing(Oracle):
        @message_handler
        async def on_word(self, message: Word, ctx: MessageContext) -> None:
            raise OwnError("it broke")

    async with started(server) as here, started(server) as there:
        await Failing.register(there, "oracle", Failing)
        for runtime in (here, there):
            with pytest.raises(KeyError) as raised:
                await runtime.send_message(Question(-1), ORACLE)
            assert raised.value.args == ("no such number", -1)
        with pytest.raises(OwnError, match="it broke"):
            await there.send_message(Word("x"), ORACLE)
        with pytest.raises(RemoteError, match="OwnError: it broke") as remote:
            await here.send_message(Word("x"), ORACLE)
        assert (remote.value.type, remote.value.text) == ("OwnError", "it broke")


async def test_an_unknown_recipient_is_refused_at_once(server: NatsServer) -> None:
    async with started(server) as runtime:
        with pytest.raises(UndeliverableException, match="no agent of type 'nobody'"), anyio.fail_after(120):
            await runtime.send_message(Question(1), AgentId("nobody", "x"))


async def test_topics_by_type_and_prefix_and_the_source_is_the_key(server: NatsServer) -> None:
    heard = Heard()
    async with started(server) as here, started(server) as there:
        await Listener.register(there, "writer", lambda: Listener(heard))
        await there.add_subscription(TypeSubscription("draft", "writer"))
        await there.add_subscription(TypePrefixSubscription("dra", "writer"))  # the same again, and more
        for topic, text in (
            ("draft", "one"),
            ("drawing", "two"),
            ("report", "never"),
            ("writer:any", "direct"),
        ):
            await here.publish_message(Word(text), TopicId(topic, "essay 1"))
        await here.publish_message(Word("three"), TopicId("draft", "essay/2"))

        assert await heard.wait(4) == [
            ("writer/essay 1", "one"),
            ("writer/essay 1", "two"),
            ("writer/essay 1", "direct"),
            ("writer/essay/2", "three"),
        ]


async def test_a_subscription_is_removed_for_what_follows(server: NatsServer) -> None:
    heard = Heard()
    async with started(server) as runtime:
        await Listener.register(runtime, "writer", lambda: Listener(heard))
        draft, notes = TypeSubscription("draft", "writer"), TypeSubscription("notes", "writer")
        await runtime.add_subscription(draft)
        await runtime.add_subscription(notes)
        with pytest.raises(ValueError, match="already exists"):
            await runtime.add_subscription(TypeSubscription("draft", "writer"))
        await runtime.publish_message(Word("before"), TopicId("draft", "x"))
        await heard.wait(1)
        await runtime.remove_subscription(draft.id)
        with pytest.raises(LookupError):
            await runtime.remove_subscription(draft.id)
        await runtime.publish_message(Word("after"), TopicId("draft", "x"))
        await runtime.publish_message(Word("noted"), TopicId("notes", "x"))

        assert await heard.wait(2) == [("writer/x", "before"), ("writer/x", "noted")]


async def test_a_sender_does_not_hear_itself(server: NatsServer) -> None:
    heard = Heard()

    @default_subscription
    class Echo(Listener):
        async def hear(self, text: str) -> None:
            heard.note(self.id, text)
            if text == "start":
                await self.publish_message(Word(f"from {self.id.type}"), DefaultTopicId())

    async with started(server) as here, started(server) as there:
        await Echo.register(here, "a", lambda: Echo(heard))
        await Echo.register(there, "b", lambda: Echo(heard))
        await here.publish_message(Word("start"), DefaultTopicId())
        await heard.wait(4)
        await here.stop_when_idle()
        here.start()

    assert sorted(heard.words) == [
        ("a/default", "from b"),
        ("a/default", "start"),
        ("b/default", "from a"),
        ("b/default", "start"),
    ]


async def test_messages_start_in_order_and_run_at_the_same_time(server: NatsServer) -> None:
    heard, released = Heard(), anyio.Event()

    @default_subscription
    class Waiting(Listener):
        async def hear(self, text: str) -> None:
            heard.note(self.id, text)
            if text == "19":
                released.set()
            await released.wait()

    async def make() -> Waiting:
        await asyncio.sleep(0.01)  # the first messages wait for the agent
        return Waiting(heard)

    async with started(server) as runtime:
        await Waiting.register(runtime, "waiting", make)
        for number in range(20):
            await runtime.publish_message(Word(str(number)), DefaultTopicId())
        with anyio.fail_after(120):
            await released.wait()

    assert [text for _, text in heard.words] == [str(number) for number in range(20)]


async def test_a_token_cancels_wherever_the_handler_runs(server: NatsServer) -> None:
    class Passing(RoutedAgent):
        """Asks the oracle, with the token of whoever asks it."""

        @message_handler
        async def on_question(self, message: Question, ctx: MessageContext) -> Answer:
            return await self.send_message(message, ORACLE, cancellation_token=ctx.cancellation_token)

    oracle, token = Oracle(), CancellationToken()
    async with started(server) as here, started(server) as between, started(server) as there:
        await oracle.register_instance(there, ORACLE)
        await Passing.register(between, "passing", lambda: Passing("passes questions on"))
        asking = asyncio.create_task(
            here.send_message(Question(0), AgentId("passing", "x"), cancellation_token=token)
        )
        await until(lambda: oracle.asked == 1)
        token.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await until(lambda: oracle.cancelled == 1)
        assert await there.send_message(Question(3), ORACLE)  # the agent lives on


@pytest.mark.parametrize("way", ["its own deadline", "the runtime's", "the caller's"])
async def test_whoever_stops_waiting_stops_the_handler(server: NatsServer, way: str) -> None:
    oracle = Oracle()
    options = {"request_timeout": 0.3} if way == "the runtime's" else {}
    async with started(server, **options) as here, started(server) as there:
        await oracle.register_instance(there, ORACLE)
        asking = here.send_message(Question(0), ORACLE, timeout=0.3 if way == "its own deadline" else None)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asking, 0.3 if way == "the caller's" else 60)
        await until(lambda: oracle.cancelled == 1)


async def test_metadata_and_state_of_agents_in_other_processes(server: NatsServer) -> None:
    async with started(server) as here, started(server) as there:
        await Oracle.register(there, "oracle", Oracle)
        await here.send_message(Question(1), ORACLE)
        assert await here.agent_metadata(ORACLE) == {
            "type": "oracle",
            "key": "delphi",
            "description": "doubles numbers",
        }
        assert await here.agent_save_state(ORACLE) == {"asked": 1}
        await here.agent_load_state(ORACLE, {"asked": 7})
        assert await there.save_state() == {"oracle/delphi": {"asked": 7}}
        with pytest.raises(NotAccessibleError):
            await here.try_get_underlying_agent_instance(ORACLE, Oracle)
        with pytest.raises(LookupError):
            await here.try_get_underlying_agent_instance(AgentId("nobody", "x"))
        with pytest.raises(TypeError):
            await there.try_get_underlying_agent_instance(ORACLE, Listener)
        saved = await there.save_state()
    async with started(server, namespace="another") as fresh:
        await Oracle.register(fresh, "oracle", Oracle)
        await fresh.load_state({**saved, "unknown/x": {}})
        assert (await fresh.try_get_underlying_agent_instance(ORACLE, Oracle)).asked == 7
        assert await fresh.get("oracle", "delphi", lazy=False) == ORACLE


async def test_what_is_published_while_a_process_is_away_is_handled_once_when_it_is_back(
    server: NatsServer,
) -> None:
    heard = Heard()
    async with started(server) as publisher:
        async with started(server) as runtime:
            await DefaultListener.register(runtime, "listener", lambda: DefaultListener(heard))
            await publisher.publish_message(Word("there"), DefaultTopicId())
            await heard.wait(1)
        for number in range(5):
            await publisher.publish_message(Word(f"away {number}"), DefaultTopicId())
        for _ in range(2):
            async with Runtime(address_of(server)) as runtime:
                await DefaultListener.register(runtime, "listener", lambda: DefaultListener(heard))
                await runtime.stop_when_idle()

    assert [text for _, text in heard.words] == ["there", *(f"away {number}" for number in range(5))]


async def test_a_request_while_a_process_is_away_is_answered_when_it_is_back(server: NatsServer) -> None:
    async with started(server) as asker:
        asker.add_message_serializer(try_get_known_serializers_for_type(Answer))
        async with started(server) as runtime:
            await Oracle.register(runtime, "oracle", Oracle)
        asking = asyncio.create_task(asker.send_message(Question(4), ORACLE))
        await anyio.sleep(0.1)
        assert not asking.done()
        async with started(server) as runtime:
            await Oracle.register(runtime, "oracle", Oracle)
            assert await asking == Answer(number=8, by="oracle/delphi")


async def test_what_was_published_before_a_type_existed_comes_only_if_it_is_wanted(
    server: NatsServer,
) -> None:
    async with started(server) as publisher:
        await publisher.publish_message(Word("early"), DefaultTopicId())
        for history, expected in ((0.0, ["late"]), (3600.0, ["early", "late", "late"])):
            heard = Heard()
            async with started(server, history=history) as runtime:
                name = f"listener{history:g}"
                await DefaultListener.register(runtime, name, lambda heard=heard: DefaultListener(heard))
                await publisher.publish_message(Word("late"), DefaultTopicId())
                assert [text for _, text in await heard.wait(len(expected))] == expected


async def test_processes_share_a_type_and_each_agent_lives_in_one(server: NatsServer) -> None:
    heard = {name: Heard() for name in ("first", "second")}
    keys = [f"k{number}" for number in range(40)]

    async def say_to_all(runtime: Runtime, text: str) -> None:
        for key in keys:
            await runtime.publish_message(Word(text), TopicId("default", key))

    async with started(server) as publisher, started(server) as first:
        async with started(server) as second:
            for runtime, name in ((first, "first"), (second, "second")):
                await DefaultListener.register(
                    runtime, "listener", lambda name=name: DefaultListener(heard[name])
                )
            for text in ("one", "two", "three"):
                await say_to_all(publisher, text)
            await until(lambda: sum(len(one.words) for one in heard.values()) == 120)
            at_home = {name: {agent for agent, _ in one.words} for name, one in heard.items()}
            assert not at_home["first"] & at_home["second"]
            for one in heard.values():
                for agent in {agent for agent, _ in one.words}:
                    assert [text for who, text in one.words if who == agent] == ["one", "two", "three"]
        await say_to_all(publisher, "four")  # the second has left: the first serves all
        await until(lambda: sum(text == "four" for _, text in heard["first"].words) == 40)
        assert all(text != "four" for _, text in heard["second"].words)


async def test_a_message_that_is_too_big_is_refused_and_the_next_one_arrives(server: NatsServer) -> None:
    heard = Heard()
    async with started(server) as runtime:
        await DefaultListener.register(runtime, "listener", lambda: DefaultListener(heard))
        with pytest.raises(UndeliverableException, match="too big"):
            await runtime.publish_message(Word("x" * (50 << 20)), DefaultTopicId())
        await runtime.publish_message(Word("x" * (5 << 20)), DefaultTopicId())
        await runtime.publish_message(Word("small"), DefaultTopicId())

        assert [len(text) for _, text in await heard.wait(2)] == [5 << 20, 5]


async def test_what_cannot_be_sent_is_refused_to_its_sender(server: NatsServer) -> None:
    async with started(server) as runtime:
        with pytest.raises(ValueError, match="Unknown type object"):
            await runtime.publish_message(object(), DefaultTopicId())

    class Odd(Oracle):
        @message_handler
        async def on_word(self, message: Word, ctx: MessageContext) -> Any:
            return object()

    async with started(server) as here, started(server) as there:
        await Odd.register(there, "oracle", Odd)
        with pytest.raises(ValueError, match="Unknown type object"):
            await here.send_message(Word("x"), ORACLE)
