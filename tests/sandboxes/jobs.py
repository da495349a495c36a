"""Programs to run, and the limits they run under."""

from pathlib import Path

from septet.domain.runs import Job, Limits


def python(workspace: Path, code: str, limits: Limits | None = None, stdin: bytes = b"") -> Job:
    return Job(
        command=("python", "-c", code),
        workspace=str(workspace),
        limits=limits or Limits(seconds=20),
        stdin=stdin,
    )


def tight(**bounds: float) -> Limits:
    return Limits(**{"seconds": 20.0, **bounds})  # pyright: ignore[reportArgumentType]
