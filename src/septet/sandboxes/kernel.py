"""A stateful kernel in a sandbox: cells share variables; a lost state is rebuilt by running the good cells again."""

import os
import secrets
import signal
import socket
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread
from anyio.abc import TaskGroup
from msgspec.structs import replace

from septet.domain.runs import Job, RunResult
from septet.errors import SandboxFailed
from septet.ports import Listener
from septet.sandboxes import survey as files
from septet.sandboxes import view
from septet.sandboxes.limits import children
from septet.sandboxes.process import ProcessHandle, RunMonitor, RunningProgram, poll_usage, read_stream
from septet.sandboxes.rungs.bubblewrap import Bubblewrap
from septet.sandboxes.runs import WorkspaceDisk

_CELLS = Path(__file__).with_name("inside") / "cells.py"
_GRACE = 2.0
_READY, _MAX_LINE = b"ready", 200
_CPU_SECONDS = 86_400.0
_EXIT_CODES = {"succeeded": 0, "failed": 1, "interrupted": 130, "": 137}
"""The exit code for each answer to a cell; no answer means that the kernel died."""


@dataclass(slots=True)
class KernelProcess:
    """A running kernel: its process and the channel to it."""

    program: RunningProgram
    channel: socket.socket
    stack: AsyncExitStack
    buffer: bytes = b""

    async def send(self, nonce: str, code: str) -> None:
        rest = memoryview(msgspec.json.encode((nonce, code)) + b"\n")
        while rest:
            await anyio.wait_writable(self.channel)
            try:
                rest = rest[self.channel.send(rest) :]
            except BlockingIOError:
                continue
            except OSError:
                return

    async def read_answer(self, nonce: str) -> str:
        """The kernel's answer to the cell with this nonce; empty if the kernel has died.

        Lines without the nonce are ignored: code in a cell can write to the channel.
        """
        while (line := await self.read_line()) is not None:
            sent_nonce, _, answer = line.decode("utf-8", "replace").partition(" ")
            if sent_nonce == nonce and answer in _EXIT_CODES:
                return answer
        return ""

    async def read_line(self) -> bytes | None:
        """The end of the next line, at least as long as an answer; None if the kernel has died."""
        while b"\n" not in self.buffer:
            await anyio.wait_readable(self.channel)
            try:
                piece = self.channel.recv(4096)
            except OSError:
                return None
            if not piece:
                return None
            self.buffer = self.buffer[-_MAX_LINE:] + piece
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    def interrupt(self) -> None:
        """Interrupt only the kernel's own process, which is a child of the sandbox's first process."""
        for pid in children(self.program.leader):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)

    async def end(self) -> None:
        self.channel.close()
        leader = ProcessHandle.of(self.program.leader, self.program.process)
        leader.send(signal.SIGKILL)
        await leader.wait()
        leader.close()
        with suppress(SandboxFailed):
            await self.stack.aclose()


@dataclass(slots=True)
class Kernel:
    """Runs cells in a workspace. `job` has the workspace and the limits, which apply to each cell.

    `preamble` is run after every start, before the first cell; its output is discarded.
    """

    sandbox: Bubblewrap
    job: Job
    preamble: str = ""
    successful_cells: list[str] = field(default_factory=list[str])
    session: KernelProcess | None = None

    async def run(self, code: str, listen: Listener | None = None) -> RunResult:
        """Run one cell. After a crash, first run the successful cells again; their output is discarded."""
        workspace = view.check_workspace(self.job.workspace)
        session = self.session or await self._rebuild(workspace)
        disk = WorkspaceDisk(workspace, await to_thread.run_sync(files.survey, workspace), self.job)
        monitor = RunMonitor.of(self.job.limits, listen)
        answer = await self._run_cell(session, code, monitor)
        if answer == "succeeded":
            self.successful_cells.append(code)
        if not answer:
            await self._discard()
        after, changes = await to_thread.run_sync(disk.compare)
        return RunResult(
            exit_code=_EXIT_CODES.get(answer, 1),
            stdout=monitor.stdout.text(),
            stderr=monitor.stderr.text(),
            seconds=round(time.monotonic() - monitor.start_time, 4),
            stopped_by=monitor.stopped_by or (None if answer else monitor.group_limit),
            changes=changes,
            others=files.others(disk.before, after),
            rung=self.sandbox.rung,
        )

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the running cell; its variables stay."""
        if self.session is not None:
            self.session.interrupt()

    async def restart(self, succeeded: Iterable[str] = ()) -> None:
        """Drop the state; before the next cell, only these cells are run again."""
        self.successful_cells[:] = succeeded
        await self._discard()

    async def _discard(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            with anyio.CancelScope(shield=True):
                await session.end()

    async def _rebuild(self, workspace: Path) -> KernelProcess:
        session = await self._start(workspace)
        for code in [*filter(None, [self.preamble]), *self.successful_cells]:
            if not await self._run_cell(session, code, RunMonitor.of(self.job.limits, None)):
                await self._discard()
                raise SandboxFailed("the kernel's state could not be rebuilt", "restart the kernel")
        return session

    async def _start(self, workspace: Path) -> KernelProcess:
        ours, theirs = socket.socketpair()
        limits = replace(self.job.limits, cpu_seconds=_CPU_SECONDS)
        command = ("python", "-c", _source(), str(theirs.fileno()))
        job = replace(self.job, command=command, limits=limits, stdin=b"")
        stack = AsyncExitStack()
        with theirs:
            launched = self.sandbox.launch(job, workspace, RunMonitor.of(limits, None), (theirs.fileno(),))
            started = await stack.enter_async_context(launched)
        ours.setblocking(False)
        if started.process.stdin is not None:
            started.process.stdin.close()
        self.session = KernelProcess(started, ours, stack)
        try:
            ready = await self.session.read_line()
        except BaseException:
            await self._discard()
            raise
        if ready != _READY:
            await self._discard()
            raise SandboxFailed("the kernel did not start", "septet doctor")
        return self.session

    async def _run_cell(self, session: KernelProcess, code: str, monitor: RunMonitor) -> str:
        """Run a cell and return the answer. If cancelled, end the kernel: it would be in the middle of a cell."""
        answer = ""
        try:
            async with anyio.create_task_group() as group:
                _watch(group, session, monitor)
                nonce = secrets.token_hex()
                await session.send(nonce, code)
                answer = await session.read_answer(nonce)
                await _drain(session, monitor)
                group.cancel_scope.cancel()
        except BaseException:
            await self._discard()
            raise
        monitor.group_limit = session.program.group.limit_hit()
        return answer


def _watch(group: TaskGroup, session: KernelProcess, monitor: RunMonitor) -> None:
    process = session.program.process
    group.start_soon(read_stream, process.stdout, "stdout", monitor)
    group.start_soon(read_stream, process.stderr, "stderr", monitor)
    group.start_soon(poll_usage, session.program, monitor)
    group.start_soon(_enforce, session, monitor)


async def _enforce(session: KernelProcess, monitor: RunMonitor) -> None:
    """Stop a cell at a limit. For time, interrupt it first to keep the state; kill the kernel if that does not help."""
    await monitor.stop_event.wait()
    if monitor.stopped_by == "time":
        session.interrupt()
        await anyio.sleep(_GRACE)
    leader = ProcessHandle.of(session.program.leader, session.program.process)
    leader.send(signal.SIGKILL)
    leader.close()


async def _drain(session: KernelProcess, monitor: RunMonitor) -> None:
    """Read the output that was printed before the answer; it is in the pipes already."""
    process = session.program.process
    for stream, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
        assert pipe is not None
        with suppress(BlockingIOError):
            while piece := os.read(pipe.fileno(), 1 << 16):
                monitor.add_output("stdout" if stream == "stdout" else "stderr", piece)


@asynccontextmanager
async def open_kernel(sandbox: Bubblewrap, job: Job) -> AsyncGenerator[Kernel]:
    """A kernel until the context ends; the command of the job is not used."""
    kernel = Kernel(sandbox, job)
    try:
        yield kernel
    finally:
        await kernel.restart()


@cache
def _source() -> str:
    return _CELLS.read_text()
