"""The host of AutoGen runtimes: a server of our own at an address, as `GrpcWorkerAgentRuntimeHost` is one."""

import asyncio
import signal
from collections.abc import Awaitable, Sequence
from pathlib import Path

from septet.cluster.endpoint import host_folder, listening_name
from septet.cluster.server import NatsServer, ServerConfig, serve
from septet.errors import BadUsage
from septet.protocols.autogen.runtime import SIGNALS, on_signal


class RuntimeHost:
    """Serves at HOST:PORT until it is stopped. `store` is the folder of what is stored (default: as `septet host`).

    The token is there too, where runtimes on this machine find it; others need it, and TLS: `certificate` and `key`.
    """

    def __init__(
        self, address: str, *, store: str | Path | None = None, certificate: str = "", key: str = ""
    ) -> None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise BadUsage(f"'{address}' is not an address", "write HOST:PORT")
        folder = host_folder(Path(store) if store else None)
        self._config = ServerConfig(
            folder=folder, host=listening_name(host), port=int(port), certificate=certificate, key=key
        )
        self._serving: asyncio.Task[None] | None = None
        self._running: asyncio.Future[NatsServer] | None = None
        self._stop = asyncio.Event()

    def start(self) -> Awaitable[NatsServer]:
        """Begin to listen. Whoever awaits this knows that it listens."""
        if self._serving is not None:
            raise RuntimeError("Host runtime is already started.")
        self._running = asyncio.get_running_loop().create_future()
        self._stop.clear()
        self._serving = asyncio.create_task(self._serve(self._running))
        return asyncio.shield(self._running)

    async def _serve(self, running: asyncio.Future[NatsServer]) -> None:
        try:
            async with serve(self._config) as server:
                for name, text in (
                    ("address", server.endpoint.address),
                    ("certificate", self._config.certificate),
                ):
                    (self._config.folder / name).write_text(text)  # where runtimes on this machine look
                running.set_result(server)
                await self._stop.wait()
        except BaseException as error:
            if not running.done():
                running.set_exception(error)
                return
            raise

    async def stop(self, grace: float = 5.0) -> None:
        """Stop listening; everything that was stored is there after the next start."""
        if self._serving is None:
            raise RuntimeError("Host runtime is not started.")
        serving, self._serving = self._serving, None
        self._stop.set()
        await serving

    async def stop_when_signal(self, grace: float = 5.0, signals: Sequence[signal.Signals] = SIGNALS) -> None:
        await on_signal(signals)
        await self.stop(grace)
