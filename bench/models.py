"""What the model layer costs: CPU per turn and per streamed token, beside bare httpx2 and the openai SDK.

Run: python bench/models.py [--openai PYTHON]     (PYTHON: an interpreter that has the openai package)

One mock server in a process of its own; each client in a process of its own, in the same run. Ours is the whole
stack: every wrapper, the conductor, the bus, and the SQLite log with its durable writes.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

import anyio
import httpx2

from septet.domain.events import ChatStarted, ModelAnswered
from septet.domain.messages import Answer, Delta, Message, Request
from septet.domain.state import Spending, State
from septet.domain.teams import RoleSpec, TeamSpec
from septet.models.credentials import bearer
from septet.models.http import HttpClient
from septet.models.providers.openai import OpenAIModel
from septet.models.wrappers.retry import RetryPolicy
from septet.models.wrappers.wrapper_stack import Candidate, make_resilient
from septet.ports import Agent, Model, Record
from septet.runtime.bus import MemoryBus
from septet.runtime.conductor import perform
from septet.runtime.log import Log
from septet.stores.sqlite import open_store
from septet.team.floor import at_most
from septet.testing.replies import ReceivedRequest, Reply
from septet.testing.server import serve_mock
from septet.ways.round_robin.policy import round_robin

TURNS = 200
TOKENS = 20_000
PIECE = 4
REPLY = "The quick brown fox jumps over the lazy dog again. " * 4
KINDS = ("httpx2", "ours", "openai")


def serve() -> None:
    """The mock server: short replies to a chat, a long one to whoever asks for it."""
    long = Reply(text="word" * TOKENS, piece=PIECE)
    short = Reply(text=REPLY, piece=len(REPLY))

    def script(seen: ReceivedRequest) -> Reply:
        return long if b"a long one" in seen.body[-200:] else short

    async def run() -> None:
        async with serve_mock(script) as server:
            print(server.url, flush=True)
            await anyio.sleep_forever()

    anyio.run(run)


def opened(url: str, wire: HttpClient) -> Model:
    wired = OpenAIModel(f"{url}/chat/completions", "mock", bearer("k"), wire)
    return make_resilient([Candidate("url:http://127.0.0.1#mock", wired)], RetryPolicy(), print)


def speaker(name: str, model: Model, bus: MemoryBus) -> Agent:
    """Says one thing each turn, told everything that was said before, its pieces on the bus."""
    history: list[Message] = [Message(role="system", text="You write together.")]

    async def turn(state: State, record: Record) -> None:
        said = [one for one in state.talk.messages[len(history) - 1 :] if isinstance(one, ModelAnswered)]
        history.extend(
            Message(role="assistant" if one.role == name else "user", text=one.answer.text) for one in said
        )
        step = state.spending.members.get(name, Spending()).answers + 1
        async for item in model.answer(Request(role=name, step=step, messages=tuple(history))):
            if isinstance(item, Answer):
                await record(ModelAnswered(role=name, answer=item))
            else:
                await bus.publish("live.chat", item.text.encode())

    return turn


async def ours_turns(url: str) -> float:
    names = ("writer", "editor")
    team = TeamSpec(name="pair", members=tuple(RoleSpec(name=name, role="coder") for name in names))
    with tempfile.TemporaryDirectory() as folder:
        async with open_store(Path(folder) / "log.db") as store, HttpClient() as wire:
            await store.append("chat", ChatStarted(goal="talk", team=team, workspace="."), after=0)
            model, bus = opened(url, wire), MemoryBus()
            agents = {name: speaker(name, model, bus) for name in names}
            started = process_time()
            log = await Log.open(store, "chat")
            await perform(log, at_most(TURNS, round_robin(names)), agents)
            used = process_time() - started
    assert len(log.state.talk.messages) == TURNS
    return used / TURNS * 1e3


async def ours_stream(url: str) -> float:
    bus = MemoryBus()
    used, length = 0.0, 0
    async with HttpClient() as wire:
        model = opened(url, wire)
        for text in ("warm up", "a long one"):
            request = Request(role="coder", step=1, messages=(Message(role="user", text=text),))
            started = process_time()
            async for item in model.answer(request):
                length = len(item.text)
                if isinstance(item, Delta):
                    await bus.publish("live.chat", item.text.encode())
            used = process_time() - started
    assert length == PIECE * TOKENS
    return used / TOKENS * 1e6


async def httpx2_ask(client: httpx2.AsyncClient, url: str, messages: list[dict[str, str]]) -> str:
    body = {"model": "mock", "stream": True, "messages": messages}
    parts: list[str] = []
    rest = b""
    async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
        async for piece in response.aiter_bytes():
            *events, rest = (rest + piece).split(b"\n\n")
            for event in events:
                if event != b"data: [DONE]":
                    choices = json.loads(event[6:])["choices"]
                    parts.append(choices[0]["delta"].get("content", "") if choices else "")
    return "".join(parts)


async def httpx2_turns(url: str) -> float:
    messages = [{"role": "system", "content": "You write together."}]
    async with httpx2.AsyncClient(timeout=60) as client:
        started = process_time()
        for number in range(TURNS):
            text = await httpx2_ask(client, url, messages)
            assert text == REPLY
            messages.append({"role": ("user", "assistant")[number % 2], "content": text})
        return (process_time() - started) / TURNS * 1e3


async def httpx2_stream(url: str) -> float:
    used, answer = 0.0, ""
    async with httpx2.AsyncClient(timeout=60) as client:
        for text in ("warm up", "a long one"):
            started = process_time()
            answer = await httpx2_ask(client, url, [{"role": "user", "content": text}])
            used = process_time() - started
    assert len(answer) == PIECE * TOKENS
    return used / TOKENS * 1e6


OPENAI = """
import asyncio, json, sys, time
from openai import AsyncOpenAI
url, turns, tokens = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
async def ask(client, messages):
    stream = await client.chat.completions.create(model="mock", messages=messages, stream=True)
    return "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])
async def main():
    client = AsyncOpenAI(base_url=url, api_key="k")
    messages = [{"role": "system", "content": "You write together."}]
    started = time.process_time()
    for number in range(turns):
        text = await ask(client, messages)
        messages.append({"role": ("user", "assistant")[number % 2], "content": text})
    turn = (time.process_time() - started) / turns * 1e3
    started = time.process_time()
    await ask(client, [{"role": "user", "content": "a long one"}])
    print(json.dumps([turn, (time.process_time() - started) / tokens * 1e6]))
asyncio.run(main())
"""


def measured(kind: str, url: str, openai: str) -> list[float]:
    """Milliseconds of CPU per turn and microseconds per streamed token, from a fresh process."""
    if kind == "openai":
        command = [openai, "-c", OPENAI, url, str(TURNS), str(TOKENS)]
    else:
        command = [sys.executable, __file__, "--measure", kind, url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


async def measure(kind: str, url: str) -> None:
    turns, stream = {"ours": (ours_turns, ours_stream), "httpx2": (httpx2_turns, httpx2_stream)}[kind]
    print(json.dumps([await turns(url), await stream(url)]))


def compare(openai: str, rounds: int) -> int:
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        kinds = [kind for kind in KINDS if kind != "openai" or openai]
        runs = {kind: list[list[float]]() for kind in kinds}
        for _ in range(rounds):
            for kind in kinds:
                runs[kind].append(measured(kind, url, openai))
    finally:
        server.kill()
        server.wait()
    figures = {
        kind: [statistics.median(column) for column in zip(*found, strict=True)]
        for kind, found in runs.items()
    }
    floor = figures["httpx2"]
    print("| | CPU ms a turn | × httpx2 | CPU µs a streamed token | × httpx2 |\n|---|---|---|---|---|")
    for kind, (turn, token) in figures.items():
        print(f"| {kind} | {turn:.2f} | {turn / floor[0]:.2f} | {token:.2f} | {token / floor[1]:.2f} |")
    ours = figures["ours"]
    return 0 if ours[0] <= 2.5 * floor[0] and ours[1] <= 2.0 * floor[1] else 1


def main() -> int:
    parser = argparse.ArgumentParser(description="CPU of the model layer, beside its floor.")
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--measure", nargs=2)
    parser.add_argument("--openai", default="")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if given.serve:
        serve()
    elif given.measure:
        anyio.run(measure, *given.measure)
    else:
        return compare(given.openai, given.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
