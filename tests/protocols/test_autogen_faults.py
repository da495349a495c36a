"""AutoGen's runtime on the cluster when something breaks: servers, processes, handlers, and what is sent."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response, TaskResult
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import (
    AgentId,
    CancellationToken,
    DefaultInterventionHandler,
    DefaultTopicId,
    DropMessage,
    MessageContext,
    TopicId,
    TypeSubscription,
    default_subscription,
    try_get_known_serializers_for_type,
)
from autogen_core.exceptions import CantHandleException, MessageDroppedException
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
)

from septet.autogen import Runtime
from septet.cluster.connection import connect_nats
from septet.cluster.server import NatsServer, ServerConfig, serve
from septet.errors import Unreachable

pytestmark = pytest.mark.anyio
ORACLE = AgentId("oracle", "delphi")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[NatsServer]:
    async with serve(ServerConfig(folder=tmp_path / "nats")) as running:
        yield running


async def kill(server: NatsServer) -> None:
    """kill -9, and wait until it is back."""
    back = server.restarted
    server.kill()
    await back.wait()


async def test_nothing_is_lost_or_handled_twice_over_kills_of_the_server(server: NatsServer) -> None:
    heard = Heard()
    async with started(server) as here, started(server) as there:
        await DefaultListener.register(there, "listener", lambda: DefaultListener(heard))
        for number in range(60):
            await here.publish_message(Word(str(number)), DefaultTopicId())
            if number in (20, 40):
                await kill(server)
        await heard.wait(60)
        await there.stop_when_idle()
        there.start()

    assert [text for _, text in heard.words] == [str(number) for number in range(60)]


async def test_a_request_outlives_the_server(server: NatsServer) -> None:
    class Slow(Oracle):
        async def answer(self, number: int) -> Answer:
            await kill(server)
            return Answer(number=number, by="slow")

    oracle = Slow()
    async with started(server) as here, started(server) as there:
        here.add_message_serializer(try_get_known_serializers_for_type(Answer))
        await oracle.register_instance(there, ORACLE)
        assert await here.send_message(Question(5), ORACLE) == Answer(number=5, by="slow")
    assert oracle.asked == 1


async def test_a_runtime_stops_soon_although_its_server_has_ended(tmp_path: Path) -> None:
    async with serve(ServerConfig(folder=tmp_path / "nats")) as server:
        runtime = Runtime(address_of(server))
        await runtime.start()
    with anyio.fail_after(120):
        await runtime.stop()


class Speaker(BaseChatAgent):
    """Says how many messages it knows of; before some of them the server is killed."""

    def __init__(self, name: str, server: NatsServer | None = None, kills: Sequence[int] = ()) -> None:
        super().__init__(name, "says a number")
        self._server, self._kills = server, kills
        self._known = 0
        self.turns = 0

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        self._known += len(messages)
        self.turns += 1
        if self._server is not None and self._known in self._kills:
            await kill(self._server)
        text = f"{self.name} knows {self._known}"
        self._known += 1
        return Response(chat_message=TextMessage(content=text, source=self.name))

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        self._known = 0


@asynccontextmanager
async def chatting(
    server: NatsServer, kills: Sequence[int]
) -> AsyncGenerator[tuple[RoundRobinGroupChat, list[Speaker]]]:
    async with started(server, ignore_unhandled_exceptions=False) as runtime:
        speakers = [Speaker("ann", server, kills), Speaker("bob", server, kills), Speaker("cid")]
        team = RoundRobinGroupChat(
            list(speakers), termination_condition=MaxMessageTermination(13), runtime=runtime
        )
        yield team, speakers


async def test_a_server_killed_in_the_middle_of_a_group_chat_changes_nothing(server: NatsServer) -> None:
    said: dict[tuple[int, ...], list[str]] = {}
    for kills in ((), (2, 5, 8)):
        async with chatting(server, kills) as (team, speakers):
            with anyio.fail_after(120):
                result = await team.run(task="count")
            assert isinstance(result, TaskResult)
            said[kills] = [message.to_text() for message in result.messages]
            assert [one.turns for one in speakers] == [4, 4, 4]

    assert said[()] == said[2, 5, 8]
    assert said[()][1:4] == ["ann knows 1", "bob knows 2", "cid knows 3"]
    assert said[()][-1] == "cid knows 12"


async def test_the_effects_of_a_handler_count_once_when_it_runs_again(server: NatsServer) -> None:
    """A process that dies right after its handler sent something handles the message again."""
    heard, again, release = Heard(), Heard(), anyio.Event()

    @default_subscription
    class Relay(Listener):
        async def hear(self, text: str) -> None:
            await self.publish_message(Word(f"passed {text}"), TopicId("passed", "x"))
            await self.send_message(Word(f"asked {text}"), AgentId("end", "x"))
            await super().hear(text)
            await release.wait()

    async with started(server) as end:
        await Listener.register(end, "end", lambda: Listener(heard))
        await end.add_subscription(TypeSubscription("passed", "end"))
        first = Runtime(address_of(server), grace=0.0)
        await first.start()
        await Relay.register(first, "relay", lambda: Relay(again))
        await end.publish_message(Word("a"), DefaultTopicId())
        await again.wait(1)
        await first.stop()  # the handler is cancelled after it has sent
        release.set()
        async with Runtime(address_of(server)) as second:
            await Relay.register(second, "relay", lambda: Relay(again))
            await again.wait(2)
            await second.stop_when_idle()
        await end.stop_when_idle()
        end.start()

    assert heard.words == [("end/x", "passed a"), ("end/x", "asked a")]


async def test_failures_of_events_are_kept_as_dead_letters(
    server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()

    @default_subscription
    class Failing(Listener):
        async def hear(self, text: str) -> None:
            await super().hear(text)
            if text == "bad":
                raise ValueError("cannot")

    async with started(server) as runtime:
        await Failing.register(runtime, "failing", lambda: Failing(heard))
        for text in ("bad", "good"):
            await runtime.publish_message(Word(text), DefaultTopicId())
        await runtime.stop_when_idle()
        assert [text for _, text in heard.words] == ["bad", "good"]
        ((agent, reason, message),) = await runtime.dead_letters()
        assert (str(agent), reason, message) == ("failing/default", "ValueError('cannot')", Word("bad"))
        runtime.start()
    assert "Error processing publish message" in caplog.text


async def test_an_exception_that_is_not_ignored_ends_the_runtime(server: NatsServer) -> None:
    @default_subscription
    class Failing(Listener):
        async def hear(self, text: str) -> None:
            raise ValueError("cannot")

    runtime = Runtime(address_of(server), ignore_unhandled_exceptions=False)
    await runtime.start()
    await Failing.register(runtime, "failing", lambda: Failing(Heard()))
    await runtime.publish_message(Word("x"), DefaultTopicId())
    with pytest.raises(ValueError, match="cannot"):
        await runtime.stop_when_idle()
    await runtime.close()


async def test_handlers_of_interventions_change_and_drop_and_refuse(server: NatsServer) -> None:
    class Censor(DefaultInterventionHandler):
        async def on_publish(self, message: object, *, message_context: MessageContext) -> object:
            if message == Word("secret"):
                return DropMessage
            return Word(message.text.upper()) if isinstance(message, Word) else message

        async def on_send(
            self, message: object, *, message_context: MessageContext, recipient: AgentId
        ) -> object:
            if message == Question(13):
                raise PermissionError("not that one")
            return DropMessage if message == Question(14) else message

        async def on_response(self, message: object, *, sender: AgentId, recipient: AgentId | None) -> object:
            return DropMessage if message == Answer(number=4, by="oracle/delphi") else message

    heard = Heard()
    async with started(server, intervention_handlers=[Censor()]) as runtime:
        await DefaultListener.register(runtime, "listener", lambda: DefaultListener(heard))
        await Oracle.register(runtime, "oracle", Oracle)
        for text in ("loud", "secret", "words"):
            await runtime.publish_message(Word(text), DefaultTopicId())
        assert [text for _, text in await heard.wait(2)] == ["LOUD", "WORDS"]
        with pytest.raises(PermissionError, match="not that one"):
            await runtime.send_message(Question(13), ORACLE)
        for dropped in (14, 2):
            with pytest.raises(MessageDroppedException):
                await runtime.send_message(Question(dropped), ORACLE)
        assert await runtime.send_message(Question(1), ORACLE) == Answer(number=2, by="oracle/delphi")


def event(**fields: object) -> bytes:
    """A CloudEvent that is a message as far as its outside goes."""
    good: dict[str, object] = {
        "id": "x",
        "source": "s",
        "type": "Word",
        "specversion": "1.0",
        "kind": "publish",
        "data": {},
    }
    return json.dumps({**good, **fields}).encode()


VARIANT = {"path": ["number"], "schema": "os:system"}
HOSTILE = (
    b"",
    b"not JSON",
    b"[" * 100_000,
    b'{"id": 1}',
    event(kind="nonsense"),
    event(id="a", topic="no-source"),
    event(id="b", topic="default/x", data=[1]),
    event(id="c", topic="default/x", data={"text": "x", "more": 1}),
    event(id="d", topic="default/x", type="Unheard"),
    event(id="e", topic="default/x", datacontenttype="application/x-protobuf", data_base64="//8="),
    event(id="f", topic="default/x", type="Answer", variants=[VARIANT]),
    event(id="g", kind="request", recipient="%"),
    event(id="h", kind="request", recipient="listener/x", runtime="> *"),
    event(id="i", kind="load", recipient="listener/x", data=[1]),
    event(id="j", kind="reply", request="x"),
)


async def test_what_is_not_a_message_harms_nobody(server: NatsServer) -> None:
    heard = Heard()
    async with started(server) as runtime, connect_nats(server.endpoint) as intruder:
        await DefaultListener.register(runtime, "listener", lambda: DefaultListener(heard))
        await Oracle.register(runtime, "oracle", Oracle)
        for subject in (
            "topic.default.=",
            "direct.listener",
            "cancel",
            "claim.listener.3",
            "server.listener.x",
        ):
            for body in HOSTILE:
                await intruder.publish(f"septet.autogen.default.{subject}", body)
        await intruder.flush()
        await runtime.publish_message(Word("well"), TopicId("default", "x"))
        assert await heard.wait(1) == [("listener/x", "well")]
        assert await runtime.send_message(Question(2), ORACLE)
        await runtime.stop_when_idle()
        reasons = [reason for _, reason, _ in await runtime.dead_letters()]
        runtime.start()
    assert all("CantHandleException" in reason for reason in reasons)
    assert len(reasons) >= 4


async def test_a_request_that_the_recipient_cannot_read_fails_at_the_sender(server: NatsServer) -> None:
    class Stranger(Oracle):
        pass

    async with started(server) as here, started(server) as there:
        await Stranger.register(there, "oracle", Stranger)
        with pytest.raises(CantHandleException, match="no agent here knows messages of type 'Word'"):
            await here.send_message(Word("hello"), ORACLE)
        assert await here.send_message(Question(2), ORACLE)


async def test_a_host_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("septet.protocols.autogen.link.WAIT", 0.2)
    runtime = Runtime("127.0.0.1:1")
    runtime.start()  # nobody awaits it: what follows fails
    with pytest.raises(Unreachable, match="no server answers"):
        await runtime.publish_message(Word("x"), DefaultTopicId())
    await runtime.close()
