"""Direct requests between agents: what R44 promises."""

from collections.abc import Awaitable, Callable

import anyio
import msgspec
import pytest
from buses.posting import joined
from nats.js.manager import JetStreamManager

from septet.cluster import mail
from septet.cluster.client import listen
from septet.cluster.server import Server
from septet.cluster.topics import Desk, Make, serve_agents
from septet.errors import RemoteFailed, Unreachable

pytestmark = pytest.mark.anyio


def answering(reply: Callable[[object, Desk], Awaitable[object]]) -> Make:
    """Agents that answer `ask`."""

    async def ask(data: msgspec.Raw, desk: Desk) -> object:
        return await reply(msgspec.json.decode(data), desk)

    return lambda _: {"ask": ask}


async def test_a_request_is_answered_from_another_process(server: Server) -> None:
    async def double(number: object, _: Desk) -> object:
        assert isinstance(number, int)
        return 2 * number

    async with joined(server) as (post, _), joined(server) as (elsewhere, tasks):
        await tasks.start(serve_agents, elsewhere, "doubler", answering(double))

        assert [bytes(await post.request("doubler/x", "ask", n)) for n in range(3)] == [b"0", b"2", b"4"]


async def test_a_remote_error_comes_back_with_type_and_text(server: Server) -> None:
    async def fail(_: object, __: Desk) -> object:
        raise KeyError("no such page")

    async with joined(server) as (post, tasks):
        await tasks.start(serve_agents, post, "reader", answering(fail))

        with pytest.raises(RemoteFailed, match="KeyError: 'no such page'"):
            await post.request("reader/x", "ask", None)
        with pytest.raises(RemoteFailed, match="UnknownMessage"):
            await post.request("reader/x", "sing", None)


async def test_an_unknown_recipient_is_said_without_waiting_for_the_deadline(server: Server) -> None:
    async with joined(server) as (post, _):
        with anyio.fail_after(10), pytest.raises(Unreachable, match="no agent of type 'nobody'"):
            await post.request("nobody/x", "ask", None, deadline=600)


async def test_a_request_ends_at_its_deadline_and_the_agent_lives_on(server: Server) -> None:
    slow = anyio.Event()

    async def wait(words: object, _: Desk) -> object:
        if words == "wait":
            await slow.wait()
        return words

    async with joined(server) as (post, tasks):
        await tasks.start(serve_agents, post, "sleeper", answering(wait))
        with pytest.raises(Unreachable, match=r"did not answer in 0\.3 s"):
            await post.request("sleeper/x", "ask", "wait", deadline=0.3)
        slow.set()

        assert await post.request("sleeper/x", "ask", "now") == msgspec.Raw(b'"now"')


async def test_requests_nest_also_back_to_one_who_waits(server: Server) -> None:
    async def relay(words: object, desk: Desk) -> object:
        path, me = msgspec.convert(words, list[str]), str(desk.agent)
        if not path:
            return [me]
        rest = msgspec.json.decode(await desk.request(path[0], "ask", path[1:]), type=list[str])
        return [me, *rest]

    async with joined(server) as (post, tasks), joined(server) as (elsewhere, others):
        await tasks.start(serve_agents, post, "a", answering(relay))
        await others.start(serve_agents, elsewhere, "b", answering(relay))

        answer = await post.request("a/1", "ask", ["b/1", "a/2", "b/1", "a/1"])

    assert msgspec.json.decode(answer) == ["a/1", "b/1", "a/2", "b/1", "a/1"]


async def test_requests_made_while_nobody_serves_are_answered_when_somebody_does(server: Server) -> None:
    async def echo(words: object, _: Desk) -> object:
        return words

    answers: list[object] = []
    async with joined(server) as (post, callers):
        async with joined(server) as (elsewhere, tasks):
            await tasks.start(serve_agents, elsewhere, "echo", answering(echo))

        async def call(number: int) -> None:
            answers.append(msgspec.json.decode(await post.request(f"echo/{number % 3}", "ask", number)))

        async with anyio.create_task_group() as waiting:
            for number in range(20):
                waiting.start_soon(call, number)
            await anyio.wait_all_tasks_blocked()
            await callers.start(serve_agents, post, "echo", answering(echo))

    assert sorted(answers, key=str) == sorted(range(20), key=str)


async def test_a_mailbox_that_nobody_opens_any_more_goes_away(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail, "UNUSED", 0.5)

    async def agree(_: object, __: Desk) -> object:
        return True

    gone = anyio.Event()

    async with joined(server) as (post, _):
        await listen(
            post.client, f"$JS.EVENT.ADVISORY.CONSUMER.DELETED.{mail.STREAM}.*", lambda _: gone.set()
        )
        async with joined(server) as (elsewhere, tasks):
            await tasks.start(serve_agents, elsewhere, "passing", answering(agree))
            await post.request("passing/through", "ask", None)
        with anyio.fail_after(20):
            await gone.wait()
        left = await JetStreamManager(post.client).consumers_info(mail.STREAM)

    assert not [one.name for one in left if "passing" in one.name]
