"""The kernel's own limits for a program, set by the shell that then becomes the program."""

import math
from collections.abc import Sequence

from septet.domain.runs import Limits


def limiting(limits: Limits, companions: int = 0) -> str:
    """A script that makes the settings which a process can only make for itself; one already tighter stays.

    Processes are counted per user and user namespace. So that they are not counted together with what the
    person runs elsewhere, this is done inside the sandbox, or by a user of its own, whose `companions` are the
    sandbox's own processes.
    """
    cpu = math.ceil(limits.cpu_seconds)
    processes = limits.processes + companions
    settings = [
        "-c 0",
        f"-S -t {cpu}",
        f"-H -t {cpu + 1}",
        f"-f {-(-limits.file_size // 512)}",
        f"-d {limits.memory >> 10}",
        f"-n {limits.open_files}",
    ]
    script = "".join(f"ulimit {setting} 2>/dev/null;" for setting in settings)
    return f"{script}ulimit -p {processes} 2>/dev/null || ulimit -u {processes} 2>/dev/null;"


def by_shell(script: str, command: Sequence[str]) -> list[str]:
    """The command, which a shell becomes after the script."""
    return ["/bin/sh", "-c", f'{script}exec "$@"', "sh", *command] if script else list(command)
