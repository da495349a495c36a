"""Ways to run a program that does not simply end: each makes a job of a job."""

from functools import cache
from pathlib import Path

from msgspec.structs import replace

from septet.domain.runs import Job

_HERE = Path(__file__).parent


def with_screen(job: Job, picture: str = "screenshot.png", seconds: float = 10.0) -> Job:
    """The program on a screen of its own; once what it shows has settled, a picture is left and it is ended."""
    return _inside(job, "screens.py", picture, str(seconds))


def as_server(job: Job, port: int, path: str = "/", seconds: float = 20.0) -> Job:
    """The program as a server: asked once on its port inside the sandbox, its answer shown, then ended."""
    return _inside(job, "serving.py", str(port), path, str(seconds))


def _inside(job: Job, program: str, *arguments: str) -> Job:
    return replace(job, command=("python3", "-c", _source(program), *arguments, *job.command))


@cache
def _source(name: str) -> str:
    return (_HERE / name).read_text()
