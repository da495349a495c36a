"""Septet beside other libraries for agents: each in an environment of its own, all against one mock model server.

python bench/compare.py [--rounds 3] [--rows first,turns,stream,many] [--peers septet,autogen] [--charts FOLDER]

Every client is a process that uses its library's public API (bench/peers/*_client.py; ours is one of them). In each
round all clients take a row one after the other, so that a busy machine is busy for all; what is printed are medians
over the rounds. CPU is user and system time of the client's process, without the server.

The environments are built with uv by their pinned requirements, outside of the repository, in the folder
`septet-bench` of XDG_CACHE_HOME (~/.cache), and are used again. Bytecode is written there before anything is measured.
"""

import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import NamedTuple

import anyio
import msgspec
from environments import CACHE, interpreter

from septet.testing.replies import ReceivedRequest, Reply
from septet.testing.server import serve_mock

CLIENTS = Path(__file__).parent / "peers"
OURS = "septet"
FLOOR = "aiohttp"
PEERS: Mapping[str, tuple[str, ...]] = {
    FLOOR: ("aiohttp==3.14.5",),
    "httpx2": ("httpx2==2.16.0",),
    OURS: (),
    "openai": ("openai==3.51.0",),
    "autogen": ("autogen-agentchat==0.7.5", "autogen-ext[openai,grpc]==0.7.5", "openai==3.51.0"),
    "langgraph": (
        "langgraph==1.2.22",
        "langgraph-checkpoint-sqlite==3.1.2",
        "langchain-openai==1.7.3",
        "openai==3.51.0",
    ),
    "openai_agents": ("openai-agents==0.24.0", "openai==3.51.0"),
    "pydantic_ai": ("pydantic-ai-slim[openai]==2.66.0", "openai==3.51.0"),
    "smolagents": ("smolagents[openai]==1.26.0", "openai==3.51.0"),
    "agent_framework": (
        "agent-framework-core==1.23.0",
        "agent-framework-openai==1.17.0",
        "agent-framework-orchestrations==1.4.0",
        "openai==3.51.0",
    ),
}
"""Clients and what their environments hold; the first are the floors: bare HTTP with JSON, nothing stored."""
FLOORS = (FLOOR, "httpx2")
LATENCY = 0.2
TOKENS = 20_000
REPLY = "The quick brown fox jumps over the lazy dog again. " * 4
LONG = b"a long one"


class Taken(msgspec.Struct):
    """What a client says of a row; `first` is measured from outside."""

    wall: float = 0.0
    cpu: float = 0.0
    length: int = 0
    rss: float = 0.0


class Row(NamedTuple):
    """`figure` is what is compared, in `unit`: the CPU times `scale`. `small` is a tenth, which shows the growth."""

    act: str
    about: str
    unit: str
    scale: float
    chats: int = 1
    turns: int = 1
    small: tuple[int, int] | None = None
    latency: float = 0.0


ROWS = {
    "first": Row("first", "start to first answer, imports included", "ms of CPU", 1e3),
    "turns": Row("turns", "a chat of 200 turns", "ms of CPU a turn", 1e3 / 200, turns=200, small=(1, 20)),
    "stream": Row("stream", f"a stream of {TOKENS:,} tokens", "µs of CPU a token", 1e6 / TOKENS),
    "many": Row(
        "many",
        "100 chats of 20 turns at once, 200 ms of latency",
        "s of CPU",
        1.0,
        100,
        20,
        (10, 20),
        LATENCY,
    ),
}
STYLE = 'font-family="system-ui, sans-serif" font-size="13" fill="#808890"'
Found = dict[str, dict[str, list[Taken]]]
"""By row and client, the rounds."""


def serve(latency: float) -> None:
    """The mock server: a long reply to whoever asks for it, else a short one in one piece."""
    long = Reply(text="word" * TOKENS, piece=4)
    short = Reply(text=REPLY, piece=len(REPLY), delay=latency)

    def script(seen: ReceivedRequest) -> Reply:
        return long if LONG in seen.body[-400:] else short

    async def run() -> None:
        async with serve_mock(script) as server:
            print(server.url, flush=True)
            while True:
                await anyio.sleep(1)
                server.seen.clear()

    anyio.run(run)


@contextmanager
def server_process(latency: float) -> Generator[str]:
    command = [sys.executable, __file__, "--serve", str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def run_client(peer: str, row: Row, url: str, chats: int, turns: int) -> Taken:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(CACHE / "bytecode")
    command = [
        interpreter(peer, PEERS[peer]),
        str(CLIENTS / f"{peer}_client.py"),
        row.act,
        url,
        str(chats),
        str(turns),
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{peer} failed at '{row.about}':\n{done.stderr[-3000:]}")
    taken = msgspec.json.decode(done.stdout.splitlines()[-1], type=Taken)
    if row.act == "first":
        taken.cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    assert row.act != "stream" or taken.length == len("word") * TOKENS, (peer, taken)
    return taken


def measure(rows: Sequence[str], peers: Sequence[str], rounds: int) -> Found:
    found: Found = {}
    with server_process(0.0) as fast, server_process(LATENCY) as slow:
        for peer in peers:
            run_client(peer, ROWS["first"], fast, 1, 1)  # writes the bytecode
        for number in range(rounds):
            for name in rows:
                row = ROWS[name]
                url = slow if row.latency else fast
                for peer in peers:
                    taken = run_client(peer, row, url, row.chats, row.turns)
                    found.setdefault(name, {}).setdefault(peer, []).append(taken)
                    if row.small is not None:
                        small = run_client(peer, row, url, *row.small)
                        found.setdefault(f"{name}/10", {}).setdefault(peer, []).append(small)
                print(f"round {number + 1}: {row.about}", file=sys.stderr)
    return found


def cpu_of(found: Found, row: str, peer: str) -> float:
    return median(one.cpu for one in found[row][peer])


def growth(found: Found, name: str, peer: str) -> str:
    """The exponent of what ten times as much costs: 1 is proportional, 2 quadratic."""
    if f"{name}/10" not in found:
        return ""
    return f"{math.log10(cpu_of(found, name, peer) / cpu_of(found, f'{name}/10', peer)):.2f}"


def lines(found: Found, name: str) -> Iterator[str]:
    row, clients = ROWS[name], found[name]
    best = min(
        (cpu_of(found, name, peer) for peer in clients if peer not in (*FLOORS, OURS)), default=math.nan
    )
    yield f"| {row.about} | {row.unit} | × aiohttp | × best peer | wall s | peak MB | growth |"
    yield "|---|---|---|---|---|---|---|"
    for peer, rounds in sorted(clients.items(), key=lambda item: cpu_of(found, name, item[0])):
        cpu = cpu_of(found, name, peer)
        floor = f"{ratio(clients, peer):.1f}" if FLOOR in clients else ""
        wall, rss = median(one.wall for one in rounds), median(one.rss for one in rounds)
        shown = f"{cpu / best:.2f}" if peer not in FLOORS and not math.isnan(best) else ""
        rest = f"{wall:.2f} | {rss:.0f}" if rss else " | "
        title = f"**{peer}**" if peer == OURS else peer
        yield f"| {title} | {cpu * row.scale:.2f} | {floor} | {shown} | {rest} | {growth(found, name, peer)} |"


def ratio(clients: Mapping[str, list[Taken]], peer: str) -> float:
    """How many times the floor's CPU, round by round: what slows one round slows both."""
    return median(mine.cpu / floor.cpu for mine, floor in zip(clients[peer], clients[FLOOR], strict=True))


def chart(found: Found, name: str) -> str:
    """Horizontal bars, as SVG that reads on light and dark pages."""
    row = ROWS[name]
    bars = sorted((cpu_of(found, name, peer) * row.scale, peer) for peer in found[name])
    widest = max(value for value, _ in bars)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {40 + 24 * len(bars)}" {STYLE}>',
        f'<text x="10" y="22" font-size="15">{row.about}: {row.unit}</text>',
    ]
    for number, (value, peer) in enumerate(bars):
        top, width = 36 + 24 * number, max(2.0, 470 * value / widest)
        colour = "#d9822b" if peer == OURS else "#8a9ba8"
        parts += [
            f'<text x="140" y="{top + 13}" text-anchor="end">{peer}</text>',
            f'<rect x="150" y="{top}" width="{width:.1f}" height="17" rx="2" fill="{colour}"/>',
            f'<text x="{156 + width:.1f}" y="{top + 13}">{value:.3g}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def load_average() -> str:
    return " ".join(f"{one:.1f}" for one in os.getloadavg())


def show(found: Found, charts: Path | None) -> None:
    for name in (name for name in ROWS if name in found):
        print("\n".join(["", *lines(found, name)]))
        if charts:
            (charts / f"{name}.svg").write_text(chart(found, name), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--charts", type=Path)
    parser.add_argument("--serve", type=float)
    given = parser.parse_args()
    if given.serve is not None:
        serve(given.serve)
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    began, load = datetime.now(UTC), load_average()
    found = measure(given.rows.split(","), given.peers.split(","), given.rounds)
    print(
        f"{began:%Y-%m-%d}, Python {platform.python_version()}, {os.cpu_count()} processors, "
        f"load {load} before and {load_average()} after, medians of {given.rounds} rounds"
    )
    show(found, given.charts)
    if given.json:
        given.json.write_text(json.dumps(msgspec.to_builtins(found)), encoding="utf-8")


if __name__ == "__main__":
    main()
