"""A user of its own for each workspace when root runs Septet: the kernel's limits do not bind root."""

import os
import shutil
import socket
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import IO

from anyio import to_thread

from septet.errors import SandboxFailed

_STAGING = Path(__file__).with_name("inside") / "mount_staging.py"
_STAGE = Path("/tmp")  # noqa: S108  of the prepared namespace
_FIRST_USER, _USERS_PER_PROCESS = 1_610_612_736, 64
_MOST = 64
_SECONDS = 20.0
BUSY = "try again when it does less: the chat can be resumed"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who starts the sandbox. The one without a user is whoever runs Septet."""

    user: int | None = None
    mounts: int = -1
    places: tuple[Path, ...] = ()

    @property
    def own(self) -> bool:
        return self.user is not None

    def entering(self, command: list[str]) -> list[str]:
        """The command as this user; the mounts are found by path so that no descriptor is inherited."""
        if not self.own:
            return command
        mounts = f"--mount=/proc/{os.getpid()}/fd/{self.mounts}"
        return ["nsenter", mounts, f"--setuid={self.user}", f"--setgid={self.user}", "--", *command]

    def source(self, path: Path) -> Path:
        """Where this user finds a path of the machine."""
        for number, place in enumerate(self.places):
            if path.is_relative_to(place):
                return _STAGE / str(number) / path.relative_to(place)
        return path

    def takes(self, *pipes: IO[bytes] | FileIO | None) -> None:
        """So that it may open them by name (/dev/stdout)."""
        for pipe in pipes:
            if self.user is not None and pipe is not None:
                os.fchown(pipe.fileno(), self.user, self.user)

    def close(self) -> None:
        if self.own:
            os.close(self.mounts)


NOBODY_ELSE = Identity()


@dataclass(slots=True)
class Identities:
    """The identities in use, by what they were prepared for; the oldest are let go."""

    kept: OrderedDict[tuple[object, ...], Identity] = field(
        default_factory=OrderedDict[tuple[object, ...], Identity]
    )
    made: int = 0

    async def identity(self, paths: Iterable[Path]) -> Identity:
        """The identity for these paths, the workspace first; nobody else's where none can be made."""
        if os.geteuid() != 0:
            return NOBODY_ELSE
        stamps = [(path, path.stat()) for path in paths if path.exists()]
        key = tuple((path, status.st_dev, status.st_ino, status.st_uid) for path, status in stamps)
        if key not in self.kept:
            self.made += 1
            user = _FIRST_USER + os.getpid() * _USERS_PER_PROCESS + self.made % _USERS_PER_PROCESS
            made = await to_thread.run_sync(_prepared, user, tuple(path for path, _ in stamps))
            if self.kept.setdefault(key, made) is not made:
                made.close()
        self.kept.move_to_end(key)
        while len(self.kept) > _MOST:
            self.kept.popitem(last=False)[1].close()
        return self.kept[key]


def _prepared(user: int, paths: tuple[Path, ...]) -> Identity:
    if shutil.which("nsenter") is None:
        return NOBODY_ELSE
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-I", "-S", str(_STAGING), str(theirs.fileno()), str(user)]
        try:
            finished = subprocess.run(
                [*command, *map(str, paths)],
                pass_fds=(theirs.fileno(),),
                env={},
                start_new_session=True,  # Ctrl-C on the terminal is for Septet, not for a half-made namespace
                timeout=_SECONDS,
                capture_output=True,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SandboxFailed(
                f"the sandbox was not ready within {_SECONDS:g} seconds, the machine is too busy", BUSY
            ) from error
        if finished.returncode != 0:
            return NOBODY_ELSE
        _, descriptors, _, _ = socket.recv_fds(ours, 64, 1)
    return Identity(user, descriptors[0], paths)
