"""The kernel's own limits for a program, set by the shell that then becomes the program."""

import math

from septet.domain.runs import Limits


def limited(command: tuple[str, ...], limits: Limits) -> list[str]:
    """The command behind the settings that a process can only make for itself.

    They are made inside the sandbox: the number of processes is counted per user namespace, and must not
    count what the person runs elsewhere. A limit that is already tighter stays.
    """
    cpu = math.ceil(limits.cpu_seconds)
    settings = [
        "-c 0",
        f"-H -t {cpu + 1}",
        f"-S -t {cpu}",
        f"-f {-(-limits.file_size // 512)}",
        f"-d {limits.memory >> 10}",
        f"-n {limits.open_files}",
    ]
    script = "".join(f"ulimit {setting} 2>/dev/null;" for setting in settings)
    processes = f"ulimit -p {limits.processes} 2>/dev/null || ulimit -u {limits.processes} 2>/dev/null;"
    return ["/bin/sh", "-c", f'{script}{processes} exec "$@"', "sh", *command]
