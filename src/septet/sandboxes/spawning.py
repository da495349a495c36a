"""Starts a process with three pipes, a given environment and nothing else of ours."""

import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from septet.errors import SandboxFailed


@contextmanager
def spawned(
    command: list[str],
    variables: Mapping[str, str],
    folder: Path = Path("/"),
    inherited: tuple[int, ...] = (),
) -> Generator[subprocess.Popen[bytes]]:
    """To be used in the thread of the event loop: `die with parent` means the thread that started it."""
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
