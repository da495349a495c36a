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
_STILL_SECONDS, _SURELY_STILL_SECONDS = 0.6, 3.0
"""How long a picture stays the same until it is taken; longer where the program might go on to something else."""


def apply_mode(job: Job) -> Job:
    """The job whose command does what the mode asks for. Cells are no commands: see `kernels`."""
    match job.mode:
        case None:
            return job
        case Screen():
            return screen_job(job, job.mode)
        case Server():
            return server_job(job, job.mode)
        case Cell():
            raise SandboxFailed("a cell runs in a kernel only", "run it as a file")
        case _:
            assert_never(job.mode)


def screen_job(job: Job, screen: Screen) -> Job:
    """The program on a screen of its own; one that only might use it does without where there is none."""
    if shutil.which("Xvfb") is None:
        if screen.needed:
            raise SandboxFailed("a program with a window needs Xvfb", "apt install xvfb")
        return replace(job, mode=None)
    settled = _STILL_SECONDS if screen.needed else _SURELY_STILL_SECONDS
    times = str(screen.seconds), str(settled)
    return _inside(job, "screen.py", screen.picture, *times, _need_word(screen.needed))


def server_job(job: Job, server: Server) -> Job:
    """The program as a server: asked once on its port inside the sandbox, its answer shown, then ended."""
    where = str(server.port), server.path
    return _inside(job, "http_probe.py", *where, str(server.seconds), _need_word(server.needed))


def _need_word(needed: bool) -> str:
    return "needed" if needed else "perhaps"


def _inside(job: Job, program: str, *arguments: str) -> Job:
    command = (*launcher(), _source(program), *arguments, *job.command)
    return replace(job, command=command, mode=None)


@cache
def _source(name: str) -> str:
    return (_INSIDE / name).read_text()
