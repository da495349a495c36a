"""What the person says while a turn ends and the next one begins: no turn is lost or taken twice."""

from pathlib import Path

import anyio
import pytest
from cluster.actor import LEASE, PAIR, be_member

from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats
from septet.cluster.deployment import perform_with_remote_members
from septet.cluster.endpoint import NatsEndpoint
from septet.cluster.hosts import create_streams
from septet.cluster.server import ServerConfig, serve
from septet.cluster.store import NatsStore, open_nats_store
from septet.cluster.users import Users
from septet.domain.events import ChatEnded, ChatStarted, Event, ModelAnswered, PersonSpoke, StopRequested
from septet.runtime.log import Log
from septet.ways.table import floor_for

pytestmark = pytest.mark.anyio
SPEAKERS = ["writer", "editor"] * 5
CHATS = 16


async def conduct(client: Connection, store: NatsStore, chat: str) -> None:
    await store.append(chat, ChatStarted(goal=chat, team=PAIR, workspace=""), after=0)
    log = await Log.open(store, chat)
    await perform_with_remote_members(client, store, log, floor_for(PAIR, PAIR.budget), {}, LEASE)


async def say_after(store: NatsStore, chat: str, answers: int, words: Event) -> None:
    """Say it as soon as so many answers are stored: while the next turn is opened, or taken."""
    async for recorded in store.watch(chat):
        answers -= isinstance(recorded.event, ModelAnswered)
        if answers == 0:
            break
    await store.append(chat, words, after=None)


@pytest.mark.parametrize(
    "words", [StopRequested(), PersonSpoke(text="shorter, please")], ids=["stop", "remark"]
)
async def test_words_between_an_answer_and_the_next_turn(tmp_path: Path, words: Event) -> None:
    """Three members race for every turn, each with a member's token."""
    token = Users(tmp_path).ensure("pair", ["coder", "reviewer"], ["writer", "editor"]).token
    with anyio.fail_after(120):
        async with serve(ServerConfig(folder=tmp_path)) as server, connect_nats(server.endpoint) as client:
            await create_streams(client)
            store, endpoint = (
                await open_nats_store(client),
                NatsEndpoint(address=server.endpoint.address, token=token),
            )
            async with (
                connect_nats(endpoint) as one,
                connect_nats(endpoint) as two,
                connect_nats(endpoint) as three,
                anyio.create_task_group() as members,
            ):
                for member in (one, two, three):
                    members.start_soon(be_member, member, await open_nats_store(member))
                async with anyio.create_task_group() as chats:
                    for number in range(CHATS):
                        chats.start_soon(say_after, store, f"chat-{number}", 1 + number % 9, words)
                        chats.start_soon(conduct, client, store, f"chat-{number}")
                members.cancel_scope.cancel()
            logs = [[one.event for one in await store.read(f"chat-{number}")] for number in range(CHATS)]

    for log in logs:
        said = [one.answer.text for one in log if isinstance(one, ModelAnswered)]
        assert said == [f"{name} {turn}" for turn, name in enumerate(SPEAKERS[: len(said)], start=1)]
        assert sum(isinstance(one, ChatEnded) for one in log) == 1
        assert len(said) == len(SPEAKERS) or isinstance(words, StopRequested)
