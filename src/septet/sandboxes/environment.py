"""The environment variables and the interpreter of programs in a sandbox: an allow-list, not our own environment."""

import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from septet.common.temporary import process_folder

HOME = "/tmp/home"  # noqa: S108  the sandbox's own /tmp
_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
_INHERITED = ("TZ",)


@cache
def plain_environment() -> Path:
    """A virtual environment without packages: those installed beside Septet are not for programs."""
    folder = process_folder("python")
    make_environment(folder, base_interpreter())
    return folder


def base_interpreter() -> Path:
    """The interpreter below this program's virtual environment."""
    return Path(sys.executable).resolve()


def make_environment(
    folder: Path, interpreter: Path, version: str = "{}.{}".format(*sys.version_info)
) -> None:
    """Do what `python -m venv --without-pip` does, without starting the interpreter, which may not be ours."""
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    (folder / "lib" / f"python{version}" / "site-packages").mkdir(parents=True, exist_ok=True)
    settings = f"home = {interpreter.parent}\ninclude-system-site-packages = false\nversion = {version}\n"
    (folder / "pyvenv.cfg").write_text(settings)
    for name in ("python", "python3", f"python{version}"):
        (folder / "bin" / name).symlink_to(interpreter)


def launcher() -> tuple[str, ...]:
    """The beginning of a command that runs our own source inside; -I keeps it from importing from the workspace."""
    return (str(plain_environment() / "bin" / "python"), "-I", "-c")


@cache
def interpreter_folders() -> tuple[Path, ...]:
    """The folders of the programs' interpreter: the virtual environment and the installation below it."""
    base = [Path(folder) for folder in (sys.base_prefix, sys.base_exec_prefix)]
    folders = dict.fromkeys([*base, base_interpreter().parent, plain_environment()])
    return tuple(
        folder
        for folder in folders
        if not any(folder.is_relative_to(other) for other in folders if other != folder)
    )


def search_path(first: Iterable[Path] = ()) -> str:
    """The PATH of programs, beginning with the given folders."""
    return os.pathsep.join([*map(str, first), str(plain_environment() / "bin"), *_SYSTEM_PATH])


def environment(extra: Mapping[str, str], home: str = HOME, temporary: str = "/tmp") -> dict[str, str]:  # noqa: S108  the sandbox's own
    """The variables of a program; `extra` wins. Python writes no caches to the workspace and does not buffer."""
    return {
        "PATH": search_path(),
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
        **{name: os.environ[name] for name in _INHERITED if name in os.environ},
        **extra,
    }
