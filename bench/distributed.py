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
from typing import NamedTuple

import anyio
from septet_chats import MEMBERS, REQUESTS

from septet.cluster.connection import connect_nats
from septet.cluster.server import NatsServer, ServerConfig, serve
from septet.cluster.store import open_nats_store
from septet.cluster.users import Users

HERE = Path(__file__).parent
OURS, PEER = HERE / "septet_chats.py", HERE / "peers" / "autogen_chats.py"
BARE = HERE / "peers" / "nats_chats.py"
PEER_NAME = "autogen-ext[grpc] 0.7.5, stores nothing"
FLOOR_NAME = "bare nats-py, the same messages, fsync"
TRUSTING = "septet, one token for all, as trusting"
ROWS = {
    TRUSTING: ("2m",),
    "septet, a token for each member": ("2m",),
    "septet, the same, every chat followed": ("2m", "--follow"),
    "septet, the same, fsync before every ack": ("always",),
}


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
        async with serve(ServerConfig(folder=folder, sync=sync, roles=roles)) as server:
            tokens = {
                role: Users(folder).token_file(role).read_text() if own else server.token for role in roles
            }
            async with connect_nats(server.endpoint) as client:
                await open_nats_store(client)
            return await anyio.to_thread.run_sync(play, server, tokens, chats, turns, *flags)


def play(server: NatsServer, tokens: Mapping[str, str], chats: int, turns: int, *flags: str) -> Figures:
    address = server.endpoint.address
    command = (sys.executable, str(OURS), "--chats", str(chats), "--turns", str(turns), *flags)
    keys = {**tokens, "conductor": server.token}
    links = {kind: address.replace("//", f"//{key}@") for kind, key in keys.items()}
    actors = [Actor(*command, kind, link, links["conductor"]) for kind, link in links.items()]
    try:
        assert [actor.line() for actor in actors] == ["ready"] * 3
        return measure(actors[-1], [server.pid, *(actor.process.pid for actor in actors)], chats * turns)
    finally:
        for actor in actors:
            actor.end()


async def run_bare(chats: int, turns: int) -> Figures:
    """The same number of messages on the same server with fsync, by three processes with nats-py alone."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        async with serve(ServerConfig(folder=Path(scratch) / "nats", sync="always")) as server:
            return await anyio.to_thread.run_sync(play_bare, server, chats, turns)


def play_bare(server: NatsServer, chats: int, turns: int) -> Figures:
    link = server.endpoint.address.replace("//", f"//{server.token}@")
    actors = [
        Actor(sys.executable, str(BARE), kind, link, str(chats), str(turns))
        for kind in ("writer", "editor", "conductor")
    ]
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


def compare(autogen: str, chats: int, turns: int, rounds: int) -> None:
    found: dict[str, list[Figures]] = {}
    for _ in range(rounds):
        if autogen:
            found.setdefault(PEER_NAME, []).append(run_autogen(autogen, chats, turns))
        for name, (sync, *flags) in ROWS.items():
            run = partial(run_septet, sync, chats, turns, *flags, own=name != TRUSTING)
            found.setdefault(name, []).append(anyio.run(run))
        found.setdefault(FLOOR_NAME, []).append(anyio.run(run_bare, chats, turns))
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chats", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--autogen", default="")
    given = parser.parse_args()
    compare(given.autogen, given.chats, given.turns, given.rounds)


if __name__ == "__main__":
    main()
