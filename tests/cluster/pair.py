"""A pair of members on connections of their own, and the chat that they have."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio

from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats
from septet.cluster.deployment import perform_with_remote_members
from septet.cluster.member import CastMembers, Member, TakeTurn, take_turns
from septet.cluster.server import NatsServer
from septet.cluster.store import NatsStore, open_nats_store
from septet.domain.events import ChatStarted, ModelAnswered
from septet.domain.messages import Answer
from septet.domain.state import State
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.ports import EventStore, Record
from septet.runtime.conductor import Agents
from septet.runtime.log import Log
from septet.team.floor import Floor
from septet.ways.table import floor_for

LEASE = 0.6
PAIR = TeamSpec(
    name="pair",
    members=(RoleSpec(name="writer", role="coder"), RoleSpec(name="editor", role="reviewer")),
    floor="round_robin",
    budget=Budget(rounds=6),
)


async def start(store: EventStore, chat: str) -> int:
    (started,) = await store.append(chat, ChatStarted(goal="an essay", team=PAIR, workspace=""), after=0)
    return started.seq


async def conduct(client: Connection, chat: str) -> State:
    """The loop of every chat, with nobody here."""
    store = await open_nats_store(client)
    log = await Log.open(store, chat)
    await perform_with_remote_members(client, store, log, floor_for(PAIR, PAIR.budget), {}, LEASE)
    return log.state


def words(state: State) -> list[str]:
    return [one.answer.text for one in state.talk.messages if isinstance(one, ModelAnswered)]


EXPECTED = [f"{name} {number}" for number, name in enumerate(["writer", "editor"] * 3, start=1)]


def saying(name: str, taken: list[str] | None = None) -> CastMembers:
    """A member that says its name and the number of its turn, unless the log has it already."""

    async def speak(state: State, record: Record) -> None:
        assert state.floor.turn is not None
        if taken is not None:
            taken.append(f"{name}:{state.chat}:{state.floor.turn.number}")
        if not state.floor.turn.answers:
            speaker = state.floor.turn.speaker
            await record(
                ModelAnswered(role=speaker, answer=Answer(text=f"{speaker} {state.floor.turn.number}"))
            )

    def cast(state: State) -> tuple[Floor, Agents]:
        """One turn at a time, so that others can have the next."""
        assert state.floor.turn is not None
        return floor_for(state.team, state.budget), {state.floor.turn.speaker: speak}

    return cast


def answering(store: NatsStore, name: str = "", taken: list[str] | None = None) -> TakeTurn:
    return take_turns(store, saying(name, taken))


Make = Callable[[NatsStore], TakeTurn]


@asynccontextmanager
async def members(server: NatsServer, *makes: Make) -> AsyncGenerator[None]:
    """One member per `make`, each on a connection of its own, serving both roles."""

    async def run(make: Make) -> None:
        async with connect_nats(server.endpoint, wait=30) as client, anyio.create_task_group() as roles:
            member = Member(client, make(await open_nats_store(client)), LEASE)
            roles.start_soon(member.serve, "coder")
            roles.start_soon(member.serve, "reviewer")

    async with anyio.create_task_group() as tasks:
        for make in makes:
            tasks.start_soon(run, make)
        yield
        tasks.cancel_scope.cancel()
