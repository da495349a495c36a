"""One process of Septet's side in `distributed.py`: a member of a role, or the conductor of the chats.

Run by it: python bench/septet_chats.py [--chats N] [--turns N] [--follow] KIND ADDRESS POST
"""

import argparse
import sys
from statistics import median
from time import perf_counter
from typing import NamedTuple

import anyio
import msgspec
from nats.aio.msg import Msg

from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats
from septet.cluster.deployment import check_step, perform_with_remote_members
from septet.cluster.endpoint import NatsEndpoint
from septet.cluster.member import Member, take_turns
from septet.cluster.messages import AgentId
from septet.cluster.store import NatsStore, open_nats_store
from septet.cluster.topics import HandlerContext, Handlers, open_topic_client, serve_agents
from septet.domain.events import ChatEnded, ChatStarted, Event, ModelAnswered, TurnOpened
from septet.domain.messages import Answer
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.ports import Record
from septet.runtime.conductor import Agents, perform
from septet.runtime.log import Log
from septet.team.floor import Floor
from septet.ways.table import floor_for
from septet.wiring.handle import settle

MEMBERS = (RoleSpec(name="writer", role="coder"), RoleSpec(name="editor", role="reviewer"))
REQUESTS = 300
STARTING = 200


class Given(NamedTuple):
    """What a conductor is asked to do."""

    chats: int
    turns: int
    follow: bool


async def speak(state: State, record: Record) -> Event:
    assert state.floor.turn is not None
    assert not state.floor.turn.answers
    return ModelAnswered(role=state.floor.turn.speaker, answer=Answer(text="x" * 200))


async def be_member(client: Connection, store: NatsStore, role: str, address: str) -> None:
    """Serves turns with its own token, and answers requests at `address`: the topics is not for members of teams."""
    agents = {member.name: speak for member in MEMBERS if member.role == role}

    def cast(state: State) -> tuple[Floor, Agents]:
        return floor_for(state.team, state.budget), agents

    async def asked(_: msgspec.Raw, __: HandlerContext) -> object:
        return "x" * 200

    def make(_: AgentId) -> Handlers:
        return {"ask": asked}

    settle()
    async with (
        connect_nats(NatsEndpoint(address=address)) as free,
        open_topic_client(free) as topics,
        anyio.create_task_group() as tasks,
    ):
        await tasks.start(serve_agents, topics, role, make)
        await tasks.start(Member(client, take_turns(store, cast)).serve, role)
        say("ready")


class Conductor:
    """Starts chats, opens their first turns, and is told of their ends: the turns between are the members' own."""

    def __init__(self, client: Connection, store: NatsStore, turns: int) -> None:
        self._client = client
        self._store = store
        self._team = TeamSpec(name="pair", members=MEMBERS, floor="round_robin", budget=Budget(rounds=turns))
        self._floor = floor_for(self._team, self._team.budget)
        self._turns = turns
        self._ended = anyio.Semaphore(0)

    async def follow(self, chats: int) -> None:
        """Start the chats and follow each of them to its end, as `septet conduct` does: every move is checked."""
        room = anyio.CapacityLimiter(STARTING)

        async def conduct(chat: str) -> None:
            async with room:
                log = Log(self._store, State(chat=chat))
                await log.record(ChatStarted(goal=chat, team=self._team, workspace=""))
                await perform_with_remote_members(self._client, self._store, log, self._floor, {})
                assert len(log.state.talk.messages) == self._turns

        async with anyio.create_task_group() as tasks:
            for number in range(chats):
                tasks.start_soon(conduct, f"chat-{number}")

    async def run(self, chats: int) -> None:
        await self._client.subscribe("septet.stored.*.t.chat_ended.>", cb=self._hear)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        room = anyio.CapacityLimiter(STARTING)

        async def start(chat: str) -> None:
            async with room:
                started = ChatStarted(goal=chat, team=self._team, workspace="")
                log = Log(self._store, State(chat=chat))
                await log.record(started)
                await perform(log, self._floor, {})

        async with anyio.create_task_group() as tasks:
            for number in range(chats):
                tasks.start_soon(start, f"chat-{number}")
        for _ in range(chats):
            await self._ended.acquire()

    async def check(self, chat: str) -> None:
        """Every move was the one that was due, and every turn brought its words."""
        state = State(chat=chat)
        for recorded in await self._store.read(chat):
            if isinstance(recorded.event, TurnOpened | ChatEnded):
                check_step(state, recorded.event, self._floor)
            state = fold([recorded], state)
        assert state.ended is not None
        assert len(state.talk.messages) == self._turns

    async def _hear(self, _: Msg) -> None:
        self._ended.release()


async def be_conductor(client: Connection, store: NatsStore, given: Given) -> None:
    chats, conductor = given.chats, Conductor(client, store, given.turns)
    settle()
    say("ready")
    await heard()
    started = perf_counter()
    await (conductor.follow(chats) if given.follow else conductor.run(chats))
    say(f"wall {perf_counter() - started}")
    await heard()
    for number in range(chats):
        await conductor.check(f"chat-{number}")
    async with open_topic_client(client) as topics:
        times: list[float] = []
        for _ in range(REQUESTS):
            started = perf_counter()
            await topics.request("coder/asked", "ask", 1)
            times.append(perf_counter() - started)
    say(f"p50 {median(times)}")


async def act(kind: str, address: str, topics: str, given: Given) -> None:
    async with connect_nats(NatsEndpoint(address=address)) as client:
        store = await open_nats_store(client)
        if kind == "conductor":
            await be_conductor(client, store, given)
        else:
            await be_member(client, store, kind, topics)


def say(line: str) -> None:
    print(line, flush=True)


async def heard() -> None:
    await anyio.to_thread.run_sync(sys.stdin.readline)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chats", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--follow", action="store_true")
    parser.add_argument("actor", nargs=3, metavar=("KIND", "ADDRESS", "POST"))
    given = parser.parse_args()
    kind, address, topics = given.actor
    anyio.run(act, kind, address, topics, Given(given.chats, given.turns, given.follow))


if __name__ == "__main__":
    main()
