"""A pytest plugin that lets AutoGen's own tests run on another runtime: `-p autogen_substitute`.

SUBSTITUTE says which: `septet`, `grpc` (AutoGen's own distributed one) or `single` (nothing is replaced). The tests are
those of an unpacked sdist or a checkout, as they are; only the names of the runtimes mean something else. The plugin
runs in an environment of the suite, in which Septet is installed beside AutoGen.
"""

import asyncio
import os
import socket
import tempfile
import threading
from itertools import count
from pathlib import Path
from typing import Any

import autogen_core
import pytest

WHICH = os.environ.get("SUBSTITUTE", "septet")
NUMBERS = count()
IDLE_SECONDS = 5.0
"""For how long AutoGen's worker runtime is given to become idle, since it cannot tell."""
CALLS = (
    "send_message publish_message register_factory register_agent_instance add_subscription remove_subscription"
).split()


def free_address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


class Server:
    """One nats-server for all tests; each runtime of a test of one process has a namespace of its own."""

    def __init__(self) -> None:
        self.address = ""
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))

    async def _serve(self) -> None:
        from septet.cluster.server import ServerConfig, serve

        with tempfile.TemporaryDirectory() as folder:
            async with serve(ServerConfig(folder=Path(folder))) as server:
                self.address = server.endpoint.address.replace("//", f"//{server.token}@")
                self._ready.set()
                await self._stop.wait()

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


def use_septet(server: Server) -> None:
    from septet.autogen import Runtime, RuntimeHost

    class OneProcess(Runtime):
        """Takes the place of SingleThreadedAgentRuntime."""

        def __init__(self, **options: object) -> None:
            super().__init__(server.address, namespace=f"test-{os.getpid()}-{next(NUMBERS)}", **options)

        _process_next = Runtime.process_next

    class Host(RuntimeHost):
        """Takes the place of GrpcWorkerAgentRuntimeHost; the tests use a port for several hosts."""

        def __init__(self, address: str, **_: object) -> None:
            super().__init__(address, store=Path(os.environ["SEPTET_HOME"]) / "host")

    autogen_core.SingleThreadedAgentRuntime = OneProcess
    try:
        from autogen_ext.runtimes import grpc
    except ImportError:
        return
    grpc.GrpcWorkerAgentRuntime = Runtime
    grpc.GrpcWorkerAgentRuntimeHost = Host


def use_grpc() -> None:
    """AutoGen's worker runtime where its tests want the one of one process: what that lacks is added where possible."""
    from autogen_ext.runtimes.grpc import GrpcWorkerAgentRuntime, GrpcWorkerAgentRuntimeHost

    class Worker(GrpcWorkerAgentRuntime):
        """Brings its own host, and begins with the first call, since these tests register before they start."""

        def __init__(self, **_: object) -> None:
            self._address = free_address()
            self._begun: asyncio.Task[None] | None = None
            super().__init__(self._address)

        def start(self) -> None:
            self.begin()

        def begin(self) -> "asyncio.Task[None]":
            self._begun = self._begun or asyncio.ensure_future(self._start())
            return self._begun

        async def _start(self) -> None:
            self._host = GrpcWorkerAgentRuntimeHost(self._address)
            self._host.start()
            await GrpcWorkerAgentRuntime.start(self)

        async def stop(self) -> None:
            await self.begin()
            await super().stop()
            await self._host.stop()
            self._begun = None

        async def stop_when_idle(self) -> None:
            await asyncio.sleep(IDLE_SECONDS)
            await self.stop()

    Worker.close = Worker.stop
    for name in CALLS:
        setattr(Worker, name, after_begin(getattr(GrpcWorkerAgentRuntime, name)))
    autogen_core.SingleThreadedAgentRuntime = Worker


def after_begin(method: Any) -> Any:
    async def call(self: Any, *arguments: object, **options: object) -> object:
        await self.begin()
        return await method(self, *arguments, **options)

    return call


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEPTET_HOME", str(tmp_path / "septet"))


SERVER = Server()


def pytest_configure(config: pytest.Config) -> None:
    if WHICH == "septet":
        SERVER.start()
        use_septet(SERVER)
    elif WHICH == "grpc":
        use_grpc()


def pytest_unconfigure(config: pytest.Config) -> None:
    if WHICH == "septet":
        SERVER.stop()
    elif WHICH == "grpc":
        os._exit(0)  # threads of grpc keep the process from ending; the report is written
