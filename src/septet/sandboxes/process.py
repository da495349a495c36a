"""Starts and supervises processes: handles by pidfd, captured output, test reports, limits during a run."""

import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import IO, Literal

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup
from msgspec.structs import replace

from septet.common.temporary import temporary_folder
from septet.domain.pytest_report import TestReport, parse_pytest_report
from septet.domain.runs import Job, LimitName, Limits
from septet.errors import SandboxFailed
from septet.ports import Listener
from septet.sandboxes.cgroups import ControlGroup
from septet.sandboxes.limits import ResourceUsage, exceeded_limits, usage_of

VARIABLE = "SEPTET_REPORT"
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
        return parse_pytest_report(bytes(self.buffer), self.nonce)


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


_POLL_EXIT_SECONDS = 0.02


@dataclass(slots=True)
class ProcessHandle:
    """A process by its pidfd, which never refers to a later process with the same pid.

    `descriptor` is None if the process is gone, or if the system has no pidfds; then `process` is used.
    """

    descriptor: int | None
    process: subprocess.Popen[bytes] | None = None

    @classmethod
    def of(cls, pid: int, process: subprocess.Popen[bytes]) -> "ProcessHandle":
        """The process with this pid: the given one or a descendant of it."""
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

    async def wait(self) -> None:
        """Wait for the end of the process; the first process of a pid namespace ends after all others."""
        if self.descriptor is not None and not _has_ended(self.descriptor):
            await anyio.wait_readable(self.descriptor)
        while self.process is not None and self.process.poll() is None:  # noqa: ASYNC110  no event for it here
            await anyio.sleep(_POLL_EXIT_SECONDS)

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
        self.descriptor = self.process = None


def _has_ended(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


@contextmanager
def spawn(
    command: list[str],
    variables: Mapping[str, str],
    folder: Path = Path("/"),
    inherited: tuple[int, ...] = (),
) -> Generator[subprocess.Popen[bytes]]:
    """Start a process and kill it on exit. Call it in the event loop's thread: PDEATHSIG refers to the thread."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=variables,
            cwd=folder,
            pass_fds=inherited,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        raise SandboxFailed(
            f"{command[0]} could not be started ({error.strerror})", "septet doctor"
        ) from error
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


_NUL_SYMBOL = "\u2400"


@dataclass(slots=True)
class Capture:
    """Accepts any number of bytes and keeps about `keep`: half from the start, half from the end."""

    keep: int
    total: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: deque[bytes] = field(default_factory=deque[bytes])
    _tail_size: int = 0

    def take(self, piece: bytes) -> None:
        self.total += len(piece)
        room = self.keep - self.keep // 2 - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        if piece:
            self._remember(piece)

    def _remember(self, piece: bytes) -> None:
        self._tail.append(piece)
        self._tail_size += len(piece)
        while self._tail_size - len(self._tail[0]) >= self.keep // 2:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """The kept bytes as text, with a line for what is left out."""
        tail = b"".join(self._tail)
        tail = tail[max(0, len(tail) - self.keep // 2) :]
        left_out = self.total - len(self._head) - len(tail)
        if left_out <= 0:
            return decode_output(bytes(self._head) + tail)
        head, end = decode_output(_trim_end(self._head)), decode_output(_trim_start(tail))
        return f"{head}\n… {left_out} bytes left out …\n{end}"


def decode_output(content: bytes) -> str:
    """Decode any bytes: invalid UTF-8 is replaced, NULs become a visible symbol."""
    return content.decode("utf-8", "replace").replace("\0", _NUL_SYMBOL)


def _trim_end(content: bytes | bytearray) -> bytes:
    """Remove an incomplete character at the end."""
    for back in range(1, min(4, len(content)) + 1):
        byte = content[-back]
        if byte & 0xC0 != 0x80:
            needed = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return bytes(content[:-back]) if needed > back else bytes(content)
    return bytes(content)


def _trim_start(content: bytes) -> bytes:
    """Remove an incomplete character at the start."""
    start = 0
    while start < min(3, len(content)) and content[start] & 0xC0 == 0x80:
        start += 1
    return content[start:]


_PIECE_BYTES = 1 << 16
_POLL_SECONDS = 0.05
_POLL_DISK_SECONDS = 0.25

Stream = Literal["stdout", "stderr"]
DiskCheck = Callable[[tuple[int, ...]], bool]
"""Whether these processes, or their files, exceed the disk limit. May block."""


@dataclass(frozen=True, slots=True)
class RunningProgram:
    """A running program: its process, and the leader; `kill_signal` to the leader ends all processes."""

    process: subprocess.Popen[bytes]
    leader: int
    kill_signal: signal.Signals = signal.SIGKILL
    group: ControlGroup = field(default_factory=ControlGroup)


def _do_nothing() -> None:
    return


@dataclass(slots=True)
class RunMonitor:
    """Collects output and checks limits during a run; the first limit exceeded stops the run and is recorded."""

    limits: Limits
    stdout: Capture
    stderr: Capture
    listen: Listener | None
    start_time: float = field(default_factory=time.monotonic)
    stopped_by: LimitName | None = None
    group_limit: LimitName | None = None
    exit_code: int | None = None
    stop_event: anyio.Event = field(default_factory=anyio.Event)
    on_stop: Callable[[], None] = field(default=_do_nothing)

    @classmethod
    def of(cls, limits: Limits, listen: Listener | None) -> "RunMonitor":
        return cls(limits, Capture(limits.kept_output), Capture(limits.kept_output), listen)

    def stop(self, limit: LimitName) -> None:
        if self.stopped_by is None:
            self.stopped_by = limit
            self.stop_event.set()
            self.on_stop()

    def seconds_left(self) -> float:
        return max(0.0, self.start_time + self.limits.seconds - time.monotonic())

    def add_output(self, stream: Stream, piece: bytes) -> None:
        capture = self.stdout if stream == "stdout" else self.stderr
        capture.take(piece)
        if self.listen is not None and self.stopped_by != "output":
            self.listen(stream, piece)
        if capture.total > self.limits.output:
            self.stop("output")

    def check_usage(self, usage: ResourceUsage) -> None:
        if not self.seconds_left():
            self.stop("time")
        for limit in exceeded_limits(usage, self.limits):
            self.stop(limit)


async def supervise(
    started: RunningProgram,
    stdin: bytes,
    monitor: RunMonitor,
    exceeds_disk: DiskCheck,
    channel: ReportChannel | None = None,
) -> None:
    """Wait until the program ends or exceeds a limit. On return or cancellation all its processes are killed."""
    process = ProcessHandle.of(started.process.pid, started.process)
    leader = ProcessHandle.of(started.leader, started.process)
    monitor.start_time = time.monotonic()
    monitor.on_stop = lambda: leader.send(started.kill_signal)
    try:
        async with anyio.create_task_group() as streams:
            streams.start_soon(read_stream, started.process.stdout, "stdout", monitor)
            streams.start_soon(read_stream, started.process.stderr, "stderr", monitor)
            if channel is not None:
                streams.start_soon(channel.collect)
            async with anyio.create_task_group() as watchers:
                _start_input(watchers, started.process.stdin, stdin)
                watchers.start_soon(poll_usage, started, monitor)
                watchers.start_soon(_poll_disk, started.leader, monitor, exceeds_disk)
                await process.wait()
                watchers.cancel_scope.cancel()
            leader.send(started.kill_signal)
            if channel is not None:
                channel.close_writer()
    finally:
        monitor.group_limit = started.group.limit_hit()
        with anyio.CancelScope(shield=True):
            await _end(started, process, leader)


async def _end(started: RunningProgram, process: ProcessHandle, leader: ProcessHandle) -> None:
    leader.send(started.kill_signal)
    await leader.wait()
    process.send(signal.SIGKILL)
    await process.wait()
    process.close()
    leader.close()
    started.process.wait()


async def read_stream(pipe: IO[bytes] | None, stream: Stream, monitor: RunMonitor) -> None:
    """Read to the end of the stream, which comes when the last process that holds it is dead."""
    assert pipe is not None
    os.set_blocking(pipe.fileno(), False)
    while True:
        await anyio.wait_readable(pipe)
        try:
            piece = os.read(pipe.fileno(), _PIECE_BYTES)
        except BlockingIOError:
            continue
        if not piece:
            return
        monitor.add_output(stream, piece)


def _start_input(group: TaskGroup, pipe: IO[bytes] | None, content: bytes) -> None:
    assert pipe is not None
    if content:
        group.start_soon(_write_input, pipe, content)
    else:
        pipe.close()


async def _write_input(pipe: IO[bytes], content: bytes) -> None:
    os.set_blocking(pipe.fileno(), False)
    rest = memoryview(content)
    with pipe:
        while rest:
            await anyio.wait_writable(pipe)
            try:
                rest = rest[os.write(pipe.fileno(), rest[:_PIECE_BYTES]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                return


async def poll_usage(started: RunningProgram, monitor: RunMonitor) -> None:
    """Check usage at intervals, and exactly when the time is over."""
    while True:
        await anyio.sleep(_POLL_SECONDS if monitor.stopped_by else min(_POLL_SECONDS, monitor.seconds_left()))
        if limit := started.group.limit_hit():
            monitor.stop(limit)
        monitor.check_usage(usage_of(started.leader))


async def _poll_disk(leader: int, monitor: RunMonitor, exceeds_disk: DiskCheck) -> None:
    """Check the disk, so rarely that it takes at most a tenth of the time, however many files there are."""
    pause = _POLL_DISK_SECONDS
    while True:
        await anyio.sleep(pause)
        started = time.monotonic()
        if await to_thread.run_sync(exceeds_disk, usage_of(leader).pids, abandon_on_cancel=True):
            monitor.stop("disk")
        pause = max(_POLL_DISK_SECONDS, 10 * (time.monotonic() - started))
