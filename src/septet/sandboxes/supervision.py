"""Watches one started program: streams its output, holds it to its limits, leaves nobody alive."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Literal

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from septet.domain.runs import Bound, Limits
from septet.ports import Listener
from septet.sandboxes.capture import Capture
from septet.sandboxes.cgroups import Cage
from septet.sandboxes.handles import Handle
from septet.sandboxes.reports import ReportChannel
from septet.sandboxes.usage import Usage, proportional_memory, usage_of

_PIECE = 1 << 16
_LOOK = 0.05
_LOOK_AT_DISK = 0.25

Stream = Literal["stdout", "stderr"]
Growth = Callable[[tuple[int, ...]], bool]
"""Whether these processes, or what they left behind, have outgrown the disk limit. May block."""


@dataclass(frozen=True, slots=True)
class Started:
    """A program that runs: its process, and the leader whose end by `killer` takes all others along."""

    process: subprocess.Popen[bytes]
    leader: int
    killer: signal.Signals = signal.SIGKILL
    cage: Cage = field(default_factory=Cage)


def _nothing() -> None:
    return


@dataclass(slots=True)
class Watch:
    """What is known of a run while it goes on; the first limit that is passed ends it and names it."""

    limits: Limits
    stdout: Capture
    stderr: Capture
    listen: Listener | None
    began: float = field(default_factory=time.monotonic)
    stopped_by: Bound | None = None
    met: Bound | None = None
    exit_code: int | None = None
    stopped: anyio.Event = field(default_factory=anyio.Event)
    ending: Callable[[], None] = field(default=_nothing)

    @classmethod
    def of(cls, limits: Limits, listen: Listener | None) -> "Watch":
        return cls(limits, Capture(limits.kept_output), Capture(limits.kept_output), listen)

    def stop(self, bound: Bound) -> None:
        if self.stopped_by is None:
            self.stopped_by = bound
            self.stopped.set()
            self.ending()

    def seconds_left(self) -> float:
        return max(0.0, self.began + self.limits.seconds - time.monotonic())

    def hear(self, stream: Stream, piece: bytes) -> None:
        capture = self.stdout if stream == "stdout" else self.stderr
        capture.take(piece)
        if self.listen is not None and self.stopped_by != "output":
            self.listen(stream, piece)
        if capture.total > self.limits.output:
            self.stop("output")

    def see(self, usage: Usage) -> None:
        if not self.seconds_left():
            self.stop("time")
        if usage.cpu_seconds > self.limits.cpu_seconds:
            self.stop("cpu")
        if usage.tasks >= self.limits.processes:
            self.stop("processes")
        if usage.memory > self.limits.memory and self._too_much_memory(usage):
            self.stop("memory")

    def _too_much_memory(self, usage: Usage) -> bool:
        exact = proportional_memory(usage.pids)
        return exact is None or exact > self.limits.memory


async def supervise(
    started: Started, stdin: bytes, watch: Watch, outgrown: Growth, channel: ReportChannel | None = None
) -> None:
    """Until the program has ended by itself or by a limit; on the way out, also by cancellation, all die."""
    process = Handle.of(started.process.pid, started.process)
    leader = Handle.of(started.leader, started.process)
    watch.began = time.monotonic()
    watch.ending = lambda: leader.send(started.killer)
    try:
        async with anyio.create_task_group() as streams:
            streams.start_soon(hear, started.process.stdout, "stdout", watch)
            streams.start_soon(hear, started.process.stderr, "stderr", watch)
            if channel is not None:
                streams.start_soon(channel.collect)
            async with anyio.create_task_group() as watchers:
                _feed(watchers, started.process.stdin, stdin)
                watchers.start_soon(look, started, watch)
                watchers.start_soon(_look_at_disk, started.leader, watch, outgrown)
                await process.gone()
                watchers.cancel_scope.cancel()
            leader.send(started.killer)
            if channel is not None:
                channel.close_ours()
    finally:
        watch.met = started.cage.met()
        with anyio.CancelScope(shield=True):
            await _end(started, process, leader)


async def _end(started: Started, process: Handle, leader: Handle) -> None:
    leader.send(started.killer)
    await leader.gone()
    process.send(signal.SIGKILL)
    await process.gone()
    process.close()
    leader.close()
    started.process.wait()


async def hear(pipe: IO[bytes] | None, stream: Stream, watch: Watch) -> None:
    """To the end of the stream, which comes when the last process that holds it is dead."""
    assert pipe is not None
    os.set_blocking(pipe.fileno(), False)
    while True:
        await anyio.wait_readable(pipe)
        try:
            piece = os.read(pipe.fileno(), _PIECE)
        except BlockingIOError:
            continue
        if not piece:
            return
        watch.hear(stream, piece)


def _feed(group: TaskGroup, pipe: IO[bytes] | None, content: bytes) -> None:
    assert pipe is not None
    if content:
        group.start_soon(_pour, pipe, content)
    else:
        pipe.close()


async def _pour(pipe: IO[bytes], content: bytes) -> None:
    os.set_blocking(pipe.fileno(), False)
    rest = memoryview(content)
    with pipe:
        while rest:
            await anyio.wait_writable(pipe)
            try:
                rest = rest[os.write(pipe.fileno(), rest[:_PIECE]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                return


async def look(started: Started, watch: Watch) -> None:
    """Again and again, and at the very moment at which the time is over."""
    while True:
        await anyio.sleep(_LOOK if watch.stopped_by else min(_LOOK, watch.seconds_left()))
        if met := started.cage.met():
            watch.stop(met)
        watch.see(usage_of(started.leader))


async def _look_at_disk(leader: int, watch: Watch, outgrown: Growth) -> None:
    """Seldom enough that looking takes at most a tenth of the time, however many files there are."""
    pause = _LOOK_AT_DISK
    while True:
        await anyio.sleep(pause)
        began = time.monotonic()
        if await to_thread.run_sync(outgrown, usage_of(leader).pids, abandon_on_cancel=True):
            watch.stop("disk")
        pause = max(_LOOK_AT_DISK, 10 * (time.monotonic() - began))
