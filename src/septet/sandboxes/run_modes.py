"""Ways to run a program that does not simply end: each makes a job of a job."""

import shutil
from functools import cache
from pathlib import Path
from typing import assert_never

from msgspec.structs import replace

from septet.domain.runs import Cell, Job, Screen, Server
from septet.errors import SandboxFailed
from septet.sandboxes.environment import launcher

_INSIDE = Path(__file__).with_name("inside")
_SETTLED, _SURELY_SETTLED = 0.6, 3.0
"""How long a picture stays the same until it is taken; longer where the program might go on to something else."""


def in_its_mode(job: Job) -> Job:
    """The job whose command does what the mode asks for. Cells are no commands: see `kernels`."""
    match job.mode:
        case None:
            return job
        case Screen():
            return with_screen(job, job.mode)
        case Server():
            return as_server(job, job.mode)
        case Cell():
            raise SandboxFailed("a cell runs in a kernel only", "run it as a file")
        case _:
            assert_never(job.mode)


def with_screen(job: Job, screen: Screen) -> Job:
    """The program on a screen of its own; one that only might use it does without where there is none."""
    if shutil.which("Xvfb") is None:
        if screen.needed:
            raise SandboxFailed("a program with a window needs Xvfb", "apt install xvfb")
        return replace(job, mode=None)
    settled = _SETTLED if screen.needed else _SURELY_SETTLED
    times = str(screen.seconds), str(settled)
    return _inside(job, "screen.py", screen.picture, *times, _word(screen.needed))


def as_server(job: Job, server: Server) -> Job:
    """The program as a server: asked once on its port inside the sandbox, its answer shown, then ended."""
    where = str(server.port), server.path
    return _inside(job, "http_probe.py", *where, str(server.seconds), _word(server.needed))


def _word(needed: bool) -> str:
    return "needed" if needed else "perhaps"


def _inside(job: Job, program: str, *arguments: str) -> Job:
    command = (*launcher(), _source(program), *arguments, *job.command)
    return replace(job, command=command, mode=None)


@cache
def _source(name: str) -> str:
    return (_INSIDE / name).read_text()
