"""The channel of a test run's report: separate from its output, each line with a secret nonce."""

import os
import secrets
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from io import FileIO

import anyio
from msgspec.structs import replace

from septet.common.temporary import temporary_folder
from septet.domain.pytest_report import TestReport, read_report
from septet.domain.runs import Job

VARIABLE = "SEPTET_REPORT"
_PIECE_BYTES = 1 << 16
_MAX_REPORT_BYTES = 64 << 20


@dataclass(slots=True)
class ReportChannel:
    """Reads what the run writes to `address`, an inherited descriptor or a path; `writer` keeps the channel open."""

    address: str
    reader: FileIO
    writer: FileIO
    inherited_fds: tuple[int, ...] = ()
    nonce: str = field(default_factory=secrets.token_hex)
    buffer: bytearray = field(default_factory=bytearray)

    def prepare(self, job: Job) -> Job:
        """The nonce is sent on stdin: our program reads it first, and then no test can read it."""
        variables = {**job.environment, VARIABLE: self.address}
        return replace(job, environment=variables, stdin=f"{self.nonce}\n".encode())

    async def collect(self) -> None:
        """Read until no process has the channel open. A far too long report is truncated."""
        os.set_blocking(self.reader.fileno(), False)
        while True:
            await anyio.wait_readable(self.reader)
            piece = self.reader.read(_PIECE_BYTES)
            if piece == b"":
                return
            if piece and len(self.buffer) < _MAX_REPORT_BYTES:
                self.buffer += piece

    def close_writer(self) -> None:
        """Close our end, so that `collect` ends with the run's processes."""
        self.writer.close()

    def report(self) -> TestReport:
        return read_report(bytes(self.buffer), self.nonce)


OpenChannel = Callable[[], AbstractContextManager[ReportChannel]]


@contextmanager
def pipe_channel() -> Generator[ReportChannel]:
    """A pipe that the program inherits."""
    reader, writer = (FileIO(end, mode) for end, mode in zip(os.pipe(), ("r", "w"), strict=True))
    with reader, writer:
        descriptor = writer.fileno()
        yield ReportChannel(str(descriptor), reader, writer, (descriptor,))


@contextmanager
def path_channel() -> Generator[ReportChannel]:
    """A named pipe, for rungs whose programs inherit no descriptors."""
    with temporary_folder("report") as folder:
        path = folder / "report"
        os.mkfifo(path)
        with suppress(OSError):
            path.chmod(0o622)
        reader = FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "r")
        with reader, FileIO(os.open(path, os.O_WRONLY | os.O_CLOEXEC), "w") as writer:
            yield ReportChannel(str(path), reader, writer)
