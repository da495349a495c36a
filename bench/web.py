"""50 sockets watch a chat that streams 2,000 tokens a second: does everybody get every byte, and at what cost?

python bench/web.py [SOCKETS] [TOKENS A SECOND] [SECONDS]
"""

import hashlib
import socket
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import msgspec
from websockets.asyncio.client import connect

from septet.agents.ask import ENCODER, Live, live_topic
from septet.domain.events import ChatStarted, ModelAnswered, TurnOpened
from septet.domain.messages import Answer
from septet.settings.home import Home
from septet.ways.table import TEAMS
from septet.web.app import application
from septet.web.app_state import open_app_state
from septet.web.auth import Access
from septet.web.channels import StreamPiece, utf16_length
from septet.web.server import SignalFreeServer, uvicorn_config
from septet.wiring.session import Session, open_session

TOKEN = "token für 🦉 "
CHAT = "stream"
BURST = 0.01


async def stream(session: Session, rate: int, seconds: float) -> str:
    """Tokens at a steady pace over the bus, then the whole answer into the log."""
    said: list[str] = []
    began = time.perf_counter()
    while (passed := time.perf_counter() - began) < seconds:
        while len(said) < passed * rate:
            said.append(f"{len(said)} {TOKEN}")
            await session.bus.publish(
                live_topic(CHAT), ENCODER.encode(Live(speaker="coder", text=said[-1])), "coder"
            )
        await anyio.sleep(BURST)
    text = "".join(said)
    await session.store.append(CHAT, ModelAnswered(role="coder", answer=Answer(text=text)), after=None)
    return text


async def serve(sockets: int, rate: int, seconds: float) -> None:
    with TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        home = Home(data=Path(folder), config=Path(folder), cache=Path(folder))
        port: int = listener.getsockname()[1]
        access = Access(b"bench", "", port, frozenset({"127.0.0.1"}), reusable=False)
        async with open_session(home) as session, open_app_state(session, "") as app:
            started = ChatStarted(goal="bench", team=TEAMS["iterate"], workspace=folder)
            await session.store.append(CHAT, started, after=0)
            await session.store.append(CHAT, TurnOpened(speaker="coder"), after=1)
            server = SignalFreeServer(uvicorn_config(application(app, access)))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(server.serve, [listener])
                await measure(session, access, port, (sockets, rate, seconds))
                server.should_exit = True


async def measure(session: Session, access: Access, port: int, load: tuple[int, int, float]) -> None:
    sockets, rate, seconds = load
    cookie = f"{access.cookie}={access.cookie_value}"
    command = [sys.executable, __file__, "watch", str(port), cookie, str(sockets)]
    async with await anyio.open_process(command, stderr=None) as watchers:
        assert watchers.stdout is not None
        await watchers.stdout.receive()
        used, began = time.process_time(), time.perf_counter()
        text = await stream(session, rate, seconds)
        lines = b"".join([part async for part in watchers.stdout])
        took, used = time.perf_counter() - began, time.process_time() - used
    result = msgspec.json.decode(lines, type=Result)
    whole = result.sums.count(hashlib.sha256(text.encode()).hexdigest())
    pace = text.count("🦉") / seconds
    print(f"{sockets} sockets, {pace:,.0f} tokens/s for {seconds:g} s, {len(text):,} characters each")
    print(f"watchers with every byte: {whole} of {sockets}; frames a socket: {result.frames}")
    print(f"server CPU: {used:.2f} s of {took:.2f} s ({used / took:.0%} of a core)")


class Result(msgspec.Struct):
    sums: list[str]
    frames: int


class Watcher:
    """One socket; it puts the pieces together as the page does."""

    def __init__(self) -> None:
        self.text = ""
        self.units = 0
        self.frames = 0
        self.ready = anyio.Event()

    async def watch(self, port: int, cookie: str) -> None:
        headers = {"Cookie": cookie, "Origin": f"http://127.0.0.1:{port}"}
        address = f"ws://127.0.0.1:{port}/api/live?chat={CHAT}"
        async with connect(address, additional_headers=headers, compression=None, max_size=None) as line:
            async for message in line:
                self.frames += 1
                if self.hear(msgspec.json.decode(message, type=dict[str, object])):
                    return

    def hear(self, frame: dict[str, object]) -> bool:
        """True when the whole answer is in the log."""
        if frame["kind"] == "ready":
            self.ready.set()
        for piece in msgspec.convert(frame.get("pieces", []), list[StreamPiece]):
            assert piece.at == self.units, "a gap or a double"
            self.text += piece.text
            self.units += utf16_length(piece.text)
        events = msgspec.convert(frame.get("events", []), list[dict[str, object]])
        return any(event["type"] == "septet.model_answered" for event in events)


async def watch(port: int, cookie: str, sockets: int) -> None:
    """The watchers, in a process of their own."""
    watchers = [Watcher() for _ in range(sockets)]
    async with anyio.create_task_group() as tasks:
        for one in watchers:
            tasks.start_soon(one.watch, port, cookie)
        for one in watchers:
            await one.ready.wait()
        print("ready", flush=True)
    sums = [hashlib.sha256(one.text.encode()).hexdigest() for one in watchers]
    frames = max(one.frames for one in watchers)
    print(msgspec.json.encode({"sums": sums, "frames": frames}).decode(), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["watch"]:
        anyio.run(watch, int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    else:
        given = [float(word) for word in sys.argv[1:]] + [50, 2000, 10][len(sys.argv) - 1 :]
        anyio.run(serve, int(given[0]), int(given[1]), given[2])
