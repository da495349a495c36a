"""A machine full of canaries: what a program in a sandbox must not read, reach, change or kill."""

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

Place = tuple[socket.AddressFamily, tuple[str, int] | str]

_HOOK = "#!/bin/sh\necho the person's own\n"


@dataclass(frozen=True, slots=True)
class Canaries:
    """`token` is the secret's content; it is in a file, in this process's environment and in a command line."""

    token: str
    workspace: Path
    outside: Path
    victim: subprocess.Popen[bytes]
    listeners: tuple[socket.socket, ...]
    environment: dict[str, str]

    def sung(self) -> list[str]:
        """What has happened to the machine that should not have."""
        found = [f"{name} changed" for name in ("canary", "secret") if not self._whole(name)]
        extra = {path.name for path in self.outside.iterdir()} - {"canary", "secret"}
        found += [f"{name} appeared outside" for name in extra]
        if self.victim.poll() is not None:
            found.append("a stranger was killed")
        found += [
            f"{listener.getsockname()!r} was reached" for listener in self.listeners if reached(listener)
        ]
        hook = self.workspace / ".git" / "hooks" / "pre-commit"
        if hook.read_text() != _HOOK or len(list(hook.parent.iterdir())) != 1:
            found.append("the hooks changed")
        return found

    def _whole(self, name: str) -> bool:
        return (self.outside / name).read_text() == self.token

    def orphans(self) -> list[int]:
        """Processes that carry the run's mark; those of the run must be gone."""
        mark = f"MARK={self.environment['MARK']}".encode()
        return [pid for pid in _pids() if mark in _bytes(Path(f"/proc/{pid}/environ"))]


def reached(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@contextmanager
def canaries(folder: Path, workspace: Path) -> Generator[Canaries]:
    """The machine around one run; `folder` is a place of the machine, not of the workspace."""
    token = secrets.token_hex(16)
    for name in ("canary", "secret"):
        (folder / name).write_text(token)
        (folder / name).chmod(0o666)
    folder.chmod(0o777)
    hooks = workspace / ".git" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "pre-commit").write_text(_HOOK)
    with ExitStack() as stack:
        listeners = [stack.enter_context(listening(place)) for place in _places(folder)]
        sleeping = [sys.executable, "-c", "import time; time.sleep(600)", token]
        victim = stack.enter_context(subprocess.Popen(sleeping))
        stack.callback(victim.kill)
        variables = {
            "MARK": secrets.token_hex(8),
            "SECRET": str(folder / "secret"),
            "OUTSIDE": str(folder),
            "PORT": str(listeners[0].getsockname()[1]),
            "SOCKET": str(folder / "socket"),
            "ABSTRACT": listeners[2].getsockname()[1:].decode(),
            "VICTIM": str(victim.pid),
        }
        (folder / "socket").rename(folder.parent / "s")
        variables["SOCKET"] = str(folder.parent / "s")
        yield Canaries(token, workspace, folder, victim, tuple(listeners), variables)


def _places(folder: Path) -> list[Place]:
    name = f"\0septet-{secrets.token_hex(8)}"
    return [
        (socket.AF_INET, ("0.0.0.0", 0)),
        (socket.AF_UNIX, str(folder / "socket")),
        (socket.AF_UNIX, name),
    ]


def listening(place: Place) -> socket.socket:
    family, address = place
    listener = socket.socket(family)
    listener.bind(address)
    listener.listen()
    listener.setblocking(False)
    return listener


def mode_bits(folder: Path) -> list[str]:
    """Files that would run as their owner, wherever they are in the folder."""
    return [
        name
        for _, folders, files, at in os.fwalk(folder)
        for name in (*folders, *files)
        if os.stat(name, dir_fd=at, follow_symlinks=False).st_mode & 0o6000
    ]
