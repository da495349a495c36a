"""A process held by descriptor: waiting and signalling can never hit another one with its number."""

import os
import select
import signal
import subprocess
import sys
from dataclasses import dataclass

import anyio

_PAUSE = 0.02


@dataclass(slots=True)
class Handle:
    """`descriptor` is None where the process is already gone, or where the system has no such thing."""

    descriptor: int | None
    process: subprocess.Popen[bytes] | None = None

    @classmethod
    def of(cls, pid: int, process: subprocess.Popen[bytes]) -> "Handle":
        """The process with this number, which is the one given or one that lives below it."""
        if sys.platform != "linux":
            return cls(None, process)
        try:
            return cls(os.pidfd_open(pid))
        except ProcessLookupError:
            return cls(None)

    def send(self, number: signal.Signals) -> None:
        if self.descriptor is not None and sys.platform == "linux":
            try:
                signal.pidfd_send_signal(self.descriptor, number)
            except ProcessLookupError:
                return
        elif self.process is not None:
            self.process.send_signal(number)

    async def gone(self) -> None:
        """Returns when the process has ended; a namespace's first process ends after all the others."""
        if self.descriptor is not None and not _over(self.descriptor):
            await anyio.wait_readable(self.descriptor)
        while self.process is not None and self.process.poll() is None:  # noqa: ASYNC110  nothing tells us here
            await anyio.sleep(_PAUSE)

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
        self.descriptor = self.process = None


def _over(descriptor: int) -> bool:
    looked = select.poll()
    looked.register(descriptor, select.POLLIN)
    return bool(looked.poll(0))
