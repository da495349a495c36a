"""The environment of a program in a sandbox: an allow-list, never what this process happens to have."""

import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

HOME = "/tmp/home"  # noqa: S108  the sandbox's own /tmp
_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
_PASSED_ON = ("TZ",)


@cache
def interpreter_folders() -> tuple[Path, ...]:
    """Where the interpreter that runs this program lives: its environment and what that is built upon."""
    folders = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    real = Path(sys.executable).resolve().parent
    found = dict.fromkeys([*(Path(folder) for folder in folders), real])
    return tuple(
        folder
        for folder in found
        if not any(folder.is_relative_to(other) for other in found if other != folder)
    )


def environment(extra: Mapping[str, str], home: str = HOME, temporary: str = "/tmp") -> dict[str, str]:  # noqa: S108  the sandbox's own
    """What a program sees, `extra` last. Python leaves no caches in the workspace and prints at once."""
    interpreters = dict.fromkeys([str(Path(sys.executable).parent), str(Path(sys.base_prefix) / "bin")])
    return {
        "PATH": os.pathsep.join([*interpreters, *_SYSTEM_PATH]),
        "HOME": home,
        "TMPDIR": temporary,
        "USER": "septet",
        "LOGNAME": "septet",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTEST_ADDOPTS": "-p no:cacheprovider",
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_OFFLINE": "1",
        **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        **extra,
    }
