"""Chats over several processes: Septet on NATS JetStream beside autogen-ext's gRPC runtime, in one run.

Run: python bench/distributed.py [--chats 1000] [--turns 10] [--rounds 3] [--autogen PYTHON]

Four processes each: a host, a conductor (manager) and two members (writer, editor). A turn is two messages, the
request to speak and what is said. Septet stores both, fenced, before it goes on; autogen stores nothing. CPU is that
of all four processes, between the first and the last message. In the first row of Septet the conductor starts the
chats and hears of their ends, since members pass the floor on by themselves, and reads and checks all of them
afterwards. There everybody has the same token, as trusting as the peer, which has none; then members have tokens that
open what their roles need; then the conductor follows and checks every move live besides, as `septet conduct` does.

All rows are measured in turn, `--rounds` times; what is printed are the medians, and those of the ratios to autogen
in the same round. PYTHON is an interpreter that has `autogen-ext[grpc]==0.7.5`; without it only Septet is measured.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import anyio
import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg

from septet.buses.addresses import AgentId
from septet.buses.connection import Link, connect
from septet.buses.mailbox import Handlers, serve_agents
from septet.buses.member import Member
from septet.buses.post import Desk, open_post
from septet.buses.recall import taking
from septet.buses.remote import check_step, perform_together
from septet.buses.server import Server, ServerPlan, serve
from septet.buses.users import Users
from septet.domain.events import ChatEnded, ChatStarted, ModelAnswered, TurnOpened
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.domain.talk import Answer
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.ports import Acts, Last
from septet.runtime.conductor import Agents, perform
from septet.runtime.log import Log
from septet.stores.nats import NatsStore, open_nats_store
from septet.team.floors import floor_for
from septet.team.moves import Floor
from septet.wiring.staying import settle

MEMBERS = (RoleSpec(name="writer", role="coder"), RoleSpec(name="editor", role="reviewer"))
REQUESTS = 300
STARTING = 200
PEER = Path(__file__).parent / "peers" / "autogen_chats.py"


class Given(NamedTuple):
    """What a conductor is asked to do."""

    chats: int
    turns: int
    follow: bool


async def speak(state: State) -> Acts:
    assert state.turn is not None
    assert not state.turn.answers
    yield Last(event=ModelAnswered(role=state.turn.speaker, answer=Answer(text="x" * 200)))


async def be_member(client: Client, store: NatsStore, role: str, address: str) -> None:
    """Serves turns with its own token, and answers requests at `address`: the post is not for members of teams."""
    agents = {member.name: speak for member in MEMBERS if member.role == role}

    def cast(state: State) -> tuple[Floor, Agents]:
        return floor_for(state.team, state.budget), agents

    async def asked(_: msgspec.Raw, __: Desk) -> object:
        return "x" * 200

    def make(_: AgentId) -> Handlers:
        return {"ask": asked}

    settle()
    async with (
        connect(Link(address=address)) as free,
        open_post(free) as post,
        anyio.create_task_group() as tasks,
    ):
        await tasks.start(serve_agents, post, role, make)
        await tasks.start(Member(client, taking(store, cast)).serve, role)
        say("ready")


class Conductor:
    """Starts chats, opens their first turns, and is told of their ends: the turns between are the members' own."""

    def __init__(self, client: Client, store: NatsStore, turns: int) -> None:
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
                async for _ in perform_together(self._client, log, self._floor, {}):
                    pass
                assert len(log.state.messages) == self._turns

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
                async for _ in perform(log, self._floor, {}):
                    pass

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
        assert len(state.messages) == self._turns

    async def _hear(self, _: Msg) -> None:
        self._ended.release()


async def be_conductor(client: Client, store: NatsStore, given: Given) -> None:
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
    async with open_post(client) as post:
        times: list[float] = []
        for _ in range(REQUESTS):
            started = perf_counter()
            await post.request("coder/asked", "ask", 1)
            times.append(perf_counter() - started)
    say(f"p50 {median(times)}")


async def act(kind: str, address: str, post: str, given: Given) -> None:
    async with connect(Link(address=address)) as client:
        store = await open_nats_store(client)
        if kind == "conductor":
            await be_conductor(client, store, given)
        else:
            await be_member(client, store, kind, post)


def say(line: str) -> None:
    print(line, flush=True)


async def heard() -> None:
    await anyio.to_thread.run_sync(sys.stdin.readline)


class Actor:
    """A process of the benchmark, which says when it is ready and what it measured."""

    def __init__(self, *command: str) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def tell(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.terminate()
        self.process.communicate()


def cpu_of(pids: list[int]) -> float:
    """Seconds of CPU that these processes have used so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Figures(NamedTuple):
    """Messages a second, µs of CPU a turn, the median of requests in ms."""

    rate: float
    cpu: float
    request: float


def measure(leader: Actor, pids: list[int], turns: int) -> Figures:
    """Let the leader run its chats, then its requests."""
    before = cpu_of(pids)
    leader.tell()
    wall = float(leader.line().split()[1])
    cpu = cpu_of(pids) - before
    leader.tell()
    p50 = float(leader.line().split()[1])
    return Figures(rate=2 * turns / wall, cpu=cpu / turns * 1e6, request=p50 * 1e3)


async def run_septet(sync: str, chats: int, turns: int, *flags: str, own: bool = True) -> Figures:
    """Members come with tokens of their own, which open what their roles need and no more, or all with one."""
    roles = {member.role: (member.name,) for member in MEMBERS}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        folder = Path(scratch) / "nats"
        async with serve(ServerPlan(folder=folder, sync=sync, roles=roles)) as server:
            tokens = {
                role: Users(folder).token_file(role).read_text() if own else server.token for role in roles
            }
            async with connect(server.link) as client:
                await open_nats_store(client)
            return await anyio.to_thread.run_sync(play, server, tokens, chats, turns, *flags)


def play(server: Server, tokens: Mapping[str, str], chats: int, turns: int, *flags: str) -> Figures:
    address = server.link.address
    command = (sys.executable, __file__, "--chats", str(chats), "--turns", str(turns), *flags, "--actor")
    keys = {**tokens, "conductor": server.token}
    links = {kind: address.replace("//", f"//{key}@") for kind, key in keys.items()}
    actors = [Actor(*command, kind, link, links["conductor"]) for kind, link in links.items()]
    try:
        assert [actor.line() for actor in actors] == ["ready"] * 3
        return measure(actors[-1], [server.pid, *(actor.process.pid for actor in actors)], chats * turns)
    finally:
        for actor in actors:
            actor.end()


def run_autogen(python: str, chats: int, turns: int) -> Figures:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    numbers = [str(chats), str(turns), str(REQUESTS)]
    actors: list[Actor] = []
    try:
        for kind in ("host", "writer", "editor", "manager"):
            actors.append(Actor(python, str(PEER), kind, address, *(numbers if kind == "manager" else [])))
            assert actors[-1].line() == "ready"
        pids = [actor.process.pid for actor in actors]
        return measure(actors[-1], pids, chats * turns)
    finally:
        for actor in actors:
            actor.end()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chats", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--autogen", default="")
    parser.add_argument("--follow", action="store_true")
    parser.add_argument("--actor", nargs=3, default=None)
    given = parser.parse_args()
    if given.actor:
        kind, address, post = given.actor
        anyio.run(act, kind, address, post, Given(given.chats, given.turns, given.follow))
        return
    compare(given.autogen, given.chats, given.turns, given.rounds)


PEER_NAME = "autogen-ext[grpc] 0.7.5, stores nothing"
TRUSTING = "septet, one token for all, as trusting"
ROWS = {
    TRUSTING: ("2m",),
    "septet, a token for each member": ("2m",),
    "septet, the same, every chat followed": ("2m", "--follow"),
    "septet, the same, fsync before every ack": ("always",),
}


def compare(autogen: str, chats: int, turns: int, rounds: int) -> None:
    found: dict[str, list[Figures]] = {}
    for _ in range(rounds):
        if autogen:
            found.setdefault(PEER_NAME, []).append(run_autogen(autogen, chats, turns))
        for name, (sync, *flags) in ROWS.items():
            run = partial(run_septet, sync, chats, turns, *flags, own=name != TRUSTING)
            found.setdefault(name, []).append(anyio.run(run))
    print(f"{chats:,} chats of {turns} turns, four processes, medians of {rounds} rounds")
    print(f"{'':44}{'messages/s':>10}{'CPU µs/turn':>14}{'request p50 ms':>16}  × autogen's messages/s, CPU")
    for name, figures in found.items():
        rate, cpu, request = (median(column) for column in zip(*figures, strict=True))
        print(f"{name:44}{rate:>10,.0f}{cpu:>14,.0f}{request:>16.2f}{ratios(figures, found.get(PEER_NAME))}")


def ratios(figures: list[Figures], peers: list[Figures] | None) -> str:
    """How many times the peer's messages a second and what part of its CPU, round by round."""
    if peers is None:
        return ""
    rates = [mine.rate / theirs.rate for mine, theirs in zip(figures, peers, strict=True)]
    costs = [theirs.cpu / mine.cpu for mine, theirs in zip(figures, peers, strict=True)]
    return f"  {median(rates):.1f}, 1/{median(costs):.1f} ({', '.join(f'1/{cost:.1f}' for cost in costs)})"


if __name__ == "__main__":
    main()
