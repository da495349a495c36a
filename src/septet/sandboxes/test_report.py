"""The channel over which a test run reports: apart from its output, each line with a nonce that nobody is shown."""

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
_PIECE = 1 << 16
_MAX_REPORT = 64 << 20


@dataclass(slots=True)
class ReportChannel:
    """What is written to `place`, a descriptor to inherit or a path, is read here; `writing` keeps it open."""

    address: str
    reader: FileIO
    writer: FileIO
    inherited_fds: tuple[int, ...] = ()
    nonce: str = field(default_factory=secrets.token_hex)
    buffer: bytearray = field(default_factory=bytearray)

    def prepare(self, job: Job) -> Job:
        """The nonce comes by stdin: the program that reads it first is ours, and then it is nowhere to be read."""
        variables = {**job.environment, VARIABLE: self.address}
        return replace(job, environment=variables, stdin=f"{self.nonce}\n".encode())

    async def collect(self) -> None:
        """To the end, which comes when nobody has it open any longer. What is far too long is not kept whole."""
        os.set_blocking(self.reader.fileno(), False)
        while True:
            await anyio.wait_readable(self.reader)
            piece = self.reader.read(_PIECE)
            if piece == b"":
                return
            if piece and len(self.buffer) < _MAX_REPORT:
                self.buffer += piece

    def close_writer(self) -> None:
        """Nobody is left who could report."""
        self.writer.close()

    def report(self) -> TestReport:
        return read_report(bytes(self.buffer), self.nonce)


OpenChannel = Callable[[], AbstractContextManager[ReportChannel]]


@contextmanager
def pipe_channel() -> Generator[ReportChannel]:
    """A pipe, whose end a program inherits."""
    reading, writing = (FileIO(end, mode) for end, mode in zip(os.pipe(), ("r", "w"), strict=True))
    with reading, writing:
        number = writing.fileno()
        yield ReportChannel(str(number), reading, writing, (number,))


@contextmanager
def path_channel() -> Generator[ReportChannel]:
    """A pipe with a name, for programs that cannot inherit anything."""
    with temporary_folder("report") as folder:
        place = folder / "report"
        os.mkfifo(place)
        with suppress(OSError):
            place.chmod(0o622)
        reading = FileIO(os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "r")
        with reading, FileIO(os.open(place, os.O_WRONLY | os.O_CLOEXEC), "w") as writing:
            yield ReportChannel(str(place), reading, writing)
