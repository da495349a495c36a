"""How far each process is with the messages of a log, written down by itself, and who is gone.

Each process writes its record soon after anything changes, and once a second anyway; the server keeps the newest of
each. A process whose record stands still, or says that it has stopped, is gone: others go on from its record.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from time import monotonic

import msgspec
from msgspec.structs import replace

from septet.cluster.message_log import MessageLog
from septet.common.values import Value

LEASE = 10.0
"""Seconds for which the record of a process may stand still before others take its shards."""
GOODBYE_TIMEOUT = 2.0
"""Seconds for which a process that stops tries to say so; without it others wait for the lease."""
WRITE_INTERVAL = 0.01
PREFIX = "septet.records"


class RuntimeRecord(Value):
    """How far a process is. `received` is how far it has read; shards in `starts` are ahead of that."""

    runtime: str
    received: int
    claimed: int = 0
    """The sequence of its newest claim that this record takes into account."""
    starts: Mapping[str, int] = {}
    at_work: Mapping[str, tuple[int, ...]] = {}
    machine: str = ""
    pid: int = 0
    stopped: bool = False
    number: int = 0

    @property
    def is_gone(self) -> bool:
        """Whether it has stopped, or was a process of this machine that no longer exists."""
        if self.stopped or self.machine != machine():
            return self.stopped
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


DECODER = msgspec.json.Decoder(RuntimeRecord)


@cache
def machine() -> str:
    """Where process ids mean the same."""
    namespace = Path("/proc/self/ns/pid")
    return f"{socket.gethostname()} {namespace.readlink() if namespace.is_symlink() else ''}".strip()


class RuntimeRecords:
    """Writes the record of this process, and reads those of others."""

    def __init__(self, log: MessageLog, root: str, runtime: str, look: Callable[[], RuntimeRecord]) -> None:
        self._log = log
        self._root = f"{PREFIX}.{root}"
        self._subject = f"{self._root}.{runtime}"
        self._look = look
        self._numbers = count(1)
        self._is_changed = False
        self._writing: asyncio.Task[None] | None = None
        self._seen: dict[str, tuple[int, float]] = {}
        """The records of others: the sequence of each, and since when it stands still."""

    async def open(self) -> None:
        self._log.client.on_reconnect.append(self._seen.clear)  # nobody could write meanwhile
        await self._log.append(self._subject, self._encode())

    def write(self) -> None:
        """Write the record soon, and not too often."""
        self._is_changed = True
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        while self._is_changed:
            self._is_changed = False
            await self._log.write(self._subject, self._encode())
            await asyncio.sleep(WRITE_INTERVAL)

    def _encode(self, stopped: bool = False) -> bytes:
        number = next(self._numbers)
        record = replace(self._look(), machine=machine(), pid=os.getpid(), stopped=stopped, number=number)
        return msgspec.json.encode(record)

    async def find(self, runtime: str) -> RuntimeRecord | None:
        stored = await self._log.newest(f"{self._root}.{runtime}")
        return DECODER.decode(stored.body) if stored else None

    async def gone(self, runtimes: Iterable[str]) -> dict[str, RuntimeRecord | None]:
        """Those of the runtimes that are gone, with their last records."""
        gone: dict[str, RuntimeRecord | None] = {}
        for runtime in runtimes:
            record = await self.find(runtime)
            now, number = monotonic(), record.number if record else 0
            before, since = self._seen.get(runtime, (-1, now))
            self._seen[runtime] = (number, since if number == before else now)
            if record is None or record.is_gone or (number == before and now - since > LEASE):
                gone[runtime] = record
        return gone

    async def close(self) -> None:
        """Say that this process has stopped."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        self._log.client.on_reconnect.remove(self._seen.clear)
        with suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_TIMEOUT):
                await self._log.append(self._subject, self._encode(stopped=True))
