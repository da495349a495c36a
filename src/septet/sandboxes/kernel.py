"""A stateful kernel in a sandbox: cells keep what they define; a lost state is rebuilt from the good cells."""

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
from septet.sandboxes.process import Handle, Started, Watch, hear, look
from septet.sandboxes.rungs.bubblewrap import Bubblewrap
from septet.sandboxes.runs import Disk

_CELLS = Path(__file__).with_name("inside") / "cells.py"
_GRACE = 2.0
_READY, _LONGEST_LINE = b"ready", 200
_CPU_FOR_LIFE = 86_400.0
_EXIT_CODES = {"succeeded": 0, "failed": 1, "interrupted": 130, "": 137}
"""What a cell's answer is as an exit code; no answer means that the kernel died."""


@dataclass(slots=True)
class Session:
    """A kernel that lives: its processes and the channel to it."""

    started: Started
    channel: socket.socket
    stack: AsyncExitStack
    pending: bytes = b""

    async def tell(self, nonce: str, code: str) -> None:
        rest = memoryview(msgspec.json.encode((nonce, code)) + b"\n")
        while rest:
            await anyio.wait_writable(self.channel)
            try:
                rest = rest[self.channel.send(rest) :]
            except BlockingIOError:
                continue
            except OSError:
                return

    async def answer(self, nonce: str) -> str:
        """The kernel's word on the cell that the nonce belongs to, or nothing if it has died.

        Whatever else stands there a cell has written, this one or one before it.
        """
        while (line := await self.line()) is not None:
            whose, _, word = line.decode("utf-8", "replace").partition(" ")
            if whose == nonce and word in _EXIT_CODES:
                return word
        return ""

    async def line(self) -> bytes | None:
        """The next one, of which no more than an answer's length is kept, or nothing if the kernel has died."""
        while b"\n" not in self.pending:
            await anyio.wait_readable(self.channel)
            try:
                piece = self.channel.recv(4096)
            except OSError:
                return None
            if not piece:
                return None
            self.pending = self.pending[-_LONGEST_LINE:] + piece
        line, _, self.pending = self.pending.partition(b"\n")
        return line

    def interrupt(self) -> None:
        """Only the kernel's own process, which is the first one's child, is interrupted."""
        for pid in children(self.started.leader):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)

    async def end(self) -> None:
        self.channel.close()
        leader = Handle.of(self.started.leader, self.started.process)
        leader.send(signal.SIGKILL)
        await leader.gone()
        leader.close()
        with suppress(SandboxFailed):
            await self.stack.aclose()


@dataclass(slots=True)
class Kernel:
    """Runs cells in a workspace. `job` says where and within what limits, which hold for each cell.

    `preamble` is run, unheard, before the first cell of every start.
    """

    sandbox: Bubblewrap
    job: Job
    preamble: str = ""
    succeeded: list[str] = field(default_factory=list[str])
    session: Session | None = None

    async def run(self, code: str, listen: Listener | None = None) -> RunResult:
        """One cell. After a crash the cells that had succeeded are run again first, unheard."""
        workspace = view.checked_workspace(self.job.workspace)
        session = self.session or await self._rebuilt(workspace)
        disk = Disk(workspace, await to_thread.run_sync(files.survey, workspace), self.job)
        watch = Watch.of(self.job.limits, listen)
        answer = await self._cell(session, code, watch)
        if answer == "succeeded":
            self.succeeded.append(code)
        if not answer:
            await self._lost()
        after, changes = await to_thread.run_sync(disk.compared)
        return RunResult(
            exit_code=_EXIT_CODES.get(answer, 1),
            stdout=watch.stdout.text(),
            stderr=watch.stderr.text(),
            seconds=round(time.monotonic() - watch.began, 4),
            stopped_by=watch.stopped_by or (None if answer else watch.met),
            changes=changes,
            others=files.others(disk.before, after),
            rung=self.sandbox.rung,
        )

    def interrupt(self) -> None:
        """The running cell gets a KeyboardInterrupt; what is defined stays."""
        if self.session is not None:
            self.session.interrupt()

    async def restart(self, succeeded: Iterable[str] = ()) -> None:
        """Forget everything but these cells, which are run again before the next one."""
        self.succeeded[:] = succeeded
        await self._lost()

    async def _lost(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            with anyio.CancelScope(shield=True):
                await session.end()

    async def _rebuilt(self, workspace: Path) -> Session:
        session = await self._begun(workspace)
        for code in [*filter(None, [self.preamble]), *self.succeeded]:
            if not await self._cell(session, code, Watch.of(self.job.limits, None)):
                await self._lost()
                raise SandboxFailed("the kernel's state could not be rebuilt", "restart the kernel")
        return session

    async def _begun(self, workspace: Path) -> Session:
        ours, theirs = socket.socketpair()
        limits = replace(self.job.limits, cpu_seconds=_CPU_FOR_LIFE)
        command = ("python", "-c", _source(), str(theirs.fileno()))
        job = replace(self.job, command=command, limits=limits, stdin=b"")
        stack = AsyncExitStack()
        with theirs:
            launched = self.sandbox.launch(job, workspace, Watch.of(limits, None), (theirs.fileno(),))
            started = await stack.enter_async_context(launched)
        ours.setblocking(False)
        if started.process.stdin is not None:
            started.process.stdin.close()
        self.session = Session(started, ours, stack)
        try:
            ready = await self.session.line()
        except BaseException:
            await self._lost()
            raise
        if ready != _READY:
            await self._lost()
            raise SandboxFailed("the kernel did not start", "septet doctor")
        return self.session

    async def _cell(self, session: Session, code: str, watch: Watch) -> str:
        """Also when it is cancelled, nobody is left in the middle of a cell."""
        answer = ""
        try:
            async with anyio.create_task_group() as group:
                _watch(group, session, watch)
                nonce = secrets.token_hex()
                await session.tell(nonce, code)
                answer = await session.answer(nonce)
                await _rest(session, watch)
                group.cancel_scope.cancel()
        except BaseException:
            await self._lost()
            raise
        watch.met = session.started.cage.met()
        return answer


def _watch(group: TaskGroup, session: Session, watch: Watch) -> None:
    process = session.started.process
    group.start_soon(hear, process.stdout, "stdout", watch)
    group.start_soon(hear, process.stderr, "stderr", watch)
    group.start_soon(look, session.started, watch)
    group.start_soon(_stop, session, watch)


async def _stop(session: Session, watch: Watch) -> None:
    """Out of time, a cell is first interrupted, so that the state is kept; what does not listen is ended."""
    await watch.stopped.wait()
    if watch.stopped_by == "time":
        session.interrupt()
        await anyio.sleep(_GRACE)
    leader = Handle.of(session.started.leader, session.started.process)
    leader.send(signal.SIGKILL)
    leader.close()


async def _rest(session: Session, watch: Watch) -> None:
    """What was printed before the answer came is in the pipes now."""
    process = session.started.process
    for stream, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
        assert pipe is not None
        with suppress(BlockingIOError):
            while piece := os.read(pipe.fileno(), 1 << 16):
                watch.hear("stdout" if stream == "stdout" else "stderr", piece)


@asynccontextmanager
async def kernel(sandbox: Bubblewrap, job: Job) -> AsyncGenerator[Kernel]:
    """A kernel for as long as the context lasts; the command of the job is not used."""
    kept = Kernel(sandbox, job)
    try:
        yield kept
    finally:
        await kept.restart()


@cache
def _source() -> str:
    return _CELLS.read_text()
