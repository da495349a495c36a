"""A process of a small cluster, to be killed: `actor.py member ADDRESS` or `actor.py conductor ADDRESS CHAT...`.

Members answer with their name and the number of the turn; conductors run their chats to the end and exit.
"""

import sys

import anyio

from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats
from septet.cluster.deployment import perform_with_remote_members
from septet.cluster.endpoint import NatsEndpoint
from septet.cluster.member import Member, take_turns
from septet.cluster.store import NatsStore, open_nats_store
from septet.domain.events import ChatStarted, Event, ModelAnswered
from septet.domain.messages import Answer
from septet.domain.state import State
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.errors import Conflict
from septet.ports import Record
from septet.runtime.conductor import Agents
from septet.runtime.log import Log
from septet.team.floor import Floor
from septet.ways.table import floor_for

LEASE = 1.0
ROUNDS = 10
PAIR = TeamSpec(
    name="pair",
    members=(RoleSpec(name="writer", role="coder"), RoleSpec(name="editor", role="reviewer")),
    floor="round_robin",
    budget=Budget(rounds=ROUNDS),
)


async def speak(state: State, record: Record) -> Event | None:
    """The editor's answers are one step with the move that follows, the writer's are not."""
    assert state.floor.turn is not None
    if state.floor.turn.answers:
        return None
    await anyio.sleep(0.02)  # a model that thinks, so that kills hit it while it does
    name = state.floor.turn.speaker
    said = ModelAnswered(role=name, answer=Answer(text=f"{name} {state.floor.turn.number}"))
    if name == "editor":
        return said
    await record(said)
    return None


def cast(state: State) -> tuple[Floor, Agents]:
    """One turn at a time, so that the chat wanders from process to process."""
    assert state.floor.turn is not None
    return floor_for(state.team, state.budget), {state.floor.turn.speaker: speak}


async def be_member(client: Connection, store: NatsStore) -> None:
    member = Member(client, take_turns(store, cast), LEASE)
    async with anyio.create_task_group() as roles:
        roles.start_soon(member.serve, "coder")
        roles.start_soon(member.serve, "reviewer")


async def be_conductor(client: Connection, store: NatsStore, chats: list[str]) -> None:
    async def run(chat: str) -> None:
        try:
            if not await store.read(chat):
                await store.append(chat, ChatStarted(goal=chat, team=PAIR, workspace=""), after=0)
            log = await Log.open(store, chat)
            await perform_with_remote_members(client, store, log, floor_for(PAIR, PAIR.budget), {}, LEASE)
        except Conflict:  # an append of a killed predecessor came in late: look again
            await run(chat)

    async with anyio.create_task_group() as tasks:
        for chat in chats:
            tasks.start_soon(run, chat)


async def main(kind: str, address: str, chats: list[str]) -> None:
    async with connect_nats(NatsEndpoint(address=address), wait=60) as client:
        store = await open_nats_store(client)
        if kind == "member":
            await be_member(client, store)
        else:
            await be_conductor(client, store, chats)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3:])
