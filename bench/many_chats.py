"""Many chats in one process, beside bare aiohttp: wall-clock time, CPU and memory of chats that wait for their model.

python bench/many_chats.py [--chats 100] [--turns 20]     both, one after the other, against one mock server
python bench/many_chats.py --idle 1000                    memory of so many chats that wait for an answer

The server answers after 200 ms. Ours is the public API with its durable log; aiohttp sends the same number of requests.
Start is excluded: both have made a request before the clock starts.
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter, process_time

import aiohttp
import anyio

from septet.testing.replies import ReceivedRequest, Reply
from septet.testing.server import serve_mock
from septet.wiring.api import Team

LATENCY = 0.2
TALK = "floor: group_chat\nmembers:\n- {role: writer, name: writer}\n- {role: editor, name: editor}\n"
TEXT = "The quick brown fox jumps over the lazy dog again. " * 4


def serve(latency: float) -> None:
    def script(_: ReceivedRequest) -> Reply:
        return Reply(text=TEXT, piece=len(TEXT) // 2 + 1, delay=latency)

    async def run() -> None:
        async with serve_mock(script) as server:
            print(server.url, flush=True)
            await anyio.sleep_forever()

    anyio.run(run)


async def measure(name: str, work: Callable[[int, int], Awaitable[None]], chats: int, turns: int) -> None:
    await work(1, 1)
    wall, cpu = perf_counter(), process_time()
    await work(chats, turns)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    print(
        f"{name:8} {chats} x {turns}: wall {wall:.2f} s, CPU {cpu:.2f} s, peak {peak_mb():.0f} MB", flush=True
    )


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def with_aiohttp(url: str, chats: int, turns: int) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:

        async def chat(turns: int) -> None:
            messages = [{"role": "system", "content": "You write together."}]
            for _ in range(turns):
                body = {"model": "mock", "stream": True, "messages": messages}
                async with client.post(f"{url}/chat/completions", json=body) as response:
                    lines = (await response.text()).splitlines()
                parts = [json.loads(one[6:]) for one in lines if one.startswith("data: {")]
                said = "".join(
                    choice["delta"].get("content") or "" for part in parts for choice in part["choices"]
                )
                assert said == TEXT
                messages.append({"role": "user", "content": said})

        async def both(chats: int, turns: int) -> None:
            await asyncio.gather(*(chat(turns) for _ in range(chats)))

        await measure("aiohttp", both, chats, turns)


async def with_septet(url: str, chats: int, turns: int, folder: Path) -> None:
    (folder / "talk.yaml").write_text(TALK, encoding="utf-8")

    async def work(chats: int, turns: int) -> None:
        options = {"rounds": turns}
        async with Team.load(
            str(folder / "talk.yaml"), model=f"url:{url}#mock", home=folder / "home", budget=options
        ) as team:
            results = await asyncio.gather(*(team.start(f"poem {number}") for number in range(chats)))
            assert all(result.status == "rounds" for result in results)

    await measure("septet", work, chats, turns)


async def idle(url: str, chats: int, folder: Path) -> None:
    (folder / "talk.yaml").write_text(TALK, encoding="utf-8")
    async with Team.load(str(folder / "talk.yaml"), model=f"url:{url}#mock", home=folder / "home") as team:
        runs = [team.start(f"poem {number}") for number in range(chats)]
        while not all(run.chat for run in runs):  # noqa: ASYNC110  # a run tells nobody else
            await asyncio.sleep(0.1)
        await asyncio.sleep(5)
        print(f"{chats} chats that wait: {memory_mb():.0f} MB", flush=True)
        await asyncio.gather(*(run.cancel() for run in runs))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chats", type=int, default=100)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--idle", type=int, default=0)
    parser.add_argument("--serve", type=float)
    parser.add_argument("--client", choices=("aiohttp", "septet", "idle"))
    parser.add_argument("--url", default="")
    given = parser.parse_args()
    if given.serve is not None:
        serve(given.serve)
    elif given.client:
        with tempfile.TemporaryDirectory() as folder:
            clients: dict[str, Callable[[], Awaitable[None]]] = {
                "aiohttp": lambda: with_aiohttp(given.url, given.chats, given.turns),
                "septet": lambda: with_septet(given.url, given.chats, given.turns, Path(folder)),
                "idle": lambda: idle(given.url, given.idle, Path(folder)),
            }
            anyio.run(clients[given.client])
    else:
        run_clients(
            sys.argv[1:], ("idle",) if given.idle else ("aiohttp", "septet"), 3600 if given.idle else LATENCY
        )


def run_clients(arguments: list[str], clients: tuple[str, ...], latency: float) -> None:
    me = [sys.executable, __file__]
    with subprocess.Popen([*me, "--serve", str(latency)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        for client in clients:
            subprocess.run([*me, *arguments, "--client", client, "--url", url], check=True)
        server.terminate()


if __name__ == "__main__":
    main()
