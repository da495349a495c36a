"""The first rung: bubblewrap with every namespace, a system-call filter, an allow-list view and limits."""

import json
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

import anyio

from septet.domain.runs import Job, RunResult
from septet.errors import NoSandbox, SandboxFailed
from septet.ports import Listener
from septet.sandboxes import seccomp, view
from septet.sandboxes.cgroups import COMPANIONS, Cage
from septet.sandboxes.environment import environment
from septet.sandboxes.limits import by_shell, limiting
from septet.sandboxes.prestarted import Numbers, Porter, Porters, called, porters
from septet.sandboxes.process import Started, Watch
from septet.sandboxes.runs import carry_out
from septet.sandboxes.users import Identities, Identity

_ISOLATION = (
    *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
    *("--unshare-cgroup-try", "--hostname", "septet", "--uid", "1000", "--gid", "1000"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)
_NO_PROGRAM = 127
_NOT_RUN = 1
"""What bubblewrap ends with when it could not even start the program."""


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """A sandbox made anew for each run, by bubblewrap, or by a program that takes its options after `arguments`."""

    program: str
    rung: str = "bubblewrap"
    arguments: tuple[str, ...] = ()
    identities: Identities = field(default_factory=Identities, repr=False)
    porters: Porters = field(default_factory=porters, repr=False)

    @classmethod
    def found(cls) -> "Bubblewrap":
        program = shutil.which("bwrap", path=os.defpath + ":/usr/local/bin") or shutil.which("bwrap")
        if program is None:
            raise NoSandbox("bubblewrap is not installed", "apt install bubblewrap")
        if not seccomp.supported():
            raise NoSandbox("there is no system-call filter for this processor", "use a container")
        return cls(program)

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        workspace = view.checked_workspace(job.workspace)
        return await carry_out(job, workspace, self.rung, self.launch, listen)

    @asynccontextmanager
    async def launch(
        self, job: Job, workspace: Path, watch: Watch, inherited: tuple[int, ...] = ()
    ) -> AsyncGenerator[Started]:
        """Starts the program of a job, which also gets the descriptors to inherit, under their numbers."""
        identity = await self.identities.identity(view.needed(workspace, job.readable))
        porter = called(identity, inherited) if inherited else self.porters.take(identity)
        with closing(porter):
            _check_that_it_holds(porter.cage, identity)
            options = [*_ISOLATION, *_variables(job, porter), *view.arguments(workspace, job, identity)]
            limits = limiting(job.limits, COMPANIONS) if identity.own else ""
            await porter.tell(job.limits, options, limits, self._command(job, identity, porter.numbers))
            report = await _until(porter.status, b"\n")
            yield Started(porter.process, _child(report, porter.process), cage=porter.cage)
            if porter.process.returncode == _NOT_RUN and watch.stopped_by is None:
                _look_why(report + await _until(porter.status), watch)
        if not inherited:
            self.porters.call_later(identity)

    def _command(self, job: Job, identity: Identity, numbers: Numbers) -> list[str]:
        """Options come by descriptor: the program can read bubblewrap's command line. So is the script's closed."""
        behind = ["--args", str(numbers.script), "--args", str(numbers.options)]
        reports = ["--seccomp", str(numbers.rules), "--json-status-fd", str(numbers.reporter)]
        program = by_shell("" if identity.own else limiting(job.limits), job.command)
        builder = [str(identity.source(Path(self.program))), *self.arguments]
        return [*builder, *behind, *reports, "--", *program]


def _variables(job: Job, porter: Porter) -> list[str]:
    wanted = environment(job.environment).items() - porter.variables.items()
    return [word for name, value in wanted for word in ("--setenv", name, value)]


def _check_that_it_holds(cage: Cage, identity: Identity) -> None:
    """The kernel does not hold root to a number of processes, whatever root is called inside."""
    if os.getuid() == 0 and not identity.own and not cage.counts_processes:
        raise NoSandbox("root's processes cannot be limited here", "run as a plain user")


def _child(report: bytes, process: subprocess.Popen[bytes]) -> int:
    """The number, outside, of the first process inside: its end is everybody's end."""
    if report:
        return int(json.loads(report.partition(b"\n")[0])["child-pid"])
    _, errors = process.communicate()
    said = " ".join(errors.decode("utf-8", "replace").split())
    raise SandboxFailed(f"the sandbox did not start ({said})", "septet doctor")


def _look_why(report: bytes, watch: Watch) -> None:
    """Without an exit code in the report the program never ran: because there is none, or for our fault."""
    if b'"exit-code"' in report:
        return
    said = watch.stderr.text().strip().rpartition("\n")[2]
    if ": execvp " in said:
        watch.exit_code = _NO_PROGRAM
    else:
        raise SandboxFailed(f"the sandbox could not start the program ({said})", "septet doctor")


async def _until(source: FileIO, mark: bytes | None = None) -> bytes:
    """What the source gives, to its end or to the mark."""
    content = b""
    while mark is None or mark not in content:
        await anyio.wait_readable(source)
        piece = source.read(4096)
        if not piece:
            break
        content += piece
    return content
