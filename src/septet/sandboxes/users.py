"""Users and /etc inside a sandbox: a user per workspace if root runs Septet, and harmless system files."""

import os
import shutil
import socket
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from io import FileIO
from pathlib import Path
from typing import IO

from anyio import to_thread

from septet.common.temporary import process_folder
from septet.errors import SandboxFailed

_ETC = Path("/etc")
_COPIED_FILES = (
    *(
        "alternatives",
        "gitconfig",
        "debian_version",
        "fonts",
        "gai.conf",
        "ld.so.cache",
        "ld.so.conf",
        "ld.so.conf.d",
    ),
    *("locale.alias", "localtime", "magic", "mailcap", "mime.types", "os-release", "protocols", "services"),
    *("ssl/cert.pem", "ssl/certs/ca-certificates.crt", "ssl/openssl.cnf", "terminfo", "timezone"),
)
_MANUALS = shutil.ignore_patterns("*.gz")
"""Most of the alternatives, often hundreds: each start would copy links to pages that programs do not read."""
_OWN_FILES = {
    "passwd": "root:x:0:0:root:/nonexistent:/bin/sh\nseptet:x:1000:1000:septet:/tmp/home:/bin/sh\n",
    "group": "root:x:0:\nseptet:x:1000:\n",
    "hosts": "127.0.0.1 localhost septet\n::1 localhost ip6-localhost\n",
    "hostname": "septet\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    "resolv.conf": "",
}


ETC_PATHS = tuple(str(_ETC / name) for name in (*_COPIED_FILES, *_OWN_FILES))
"""The machine's files of these names, for rungs that cannot mount another /etc."""


@cache
def etc_folder() -> Path:
    """A folder to mount as /etc; removed when this process ends."""
    folder = process_folder("etc")
    for name in _COPIED_FILES:
        with suppress(OSError, shutil.Error):
            _copy_file(_ETC / name, folder / name)
    for name, text in _OWN_FILES.items():
        (folder / name).write_text(text)
    return folder


def _copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, ignore=_MANUALS)
    else:
        shutil.copy(source, target, follow_symlinks=not _links_into_usr(source))


def _links_into_usr(path: Path) -> bool:
    """Whether a link points into /usr: it stays a link, because the program sees /usr."""
    return path.is_symlink() and path.resolve().is_relative_to("/usr")


_STAGING = Path(__file__).with_name("inside") / "mount_staging.py"
_STAGING_FOLDER = Path("/tmp")  # noqa: S108  of the prepared namespace
_FIRST_UID, _USERS_PER_PROCESS = 1_610_612_736, 64
_MAX_USERS = 64
_TIMEOUT = 20.0
BUSY_REMEDY = "try again when it does less: the chat can be resumed"


@dataclass(frozen=True, slots=True)
class SandboxUser:
    """The user that starts the sandbox; without a uid, the user that runs Septet.

    `mounts` is a mount namespace in which the user owns `places`.
    """

    uid: int | None = None
    mounts: int = -1
    places: tuple[Path, ...] = ()

    @property
    def is_separate(self) -> bool:
        return self.uid is not None

    def command_as(self, command: list[str]) -> list[str]:
        """The command as this user; the namespace is given by path, so that no descriptor is inherited."""
        if not self.is_separate:
            return command
        mounts = f"--mount=/proc/{os.getpid()}/fd/{self.mounts}"
        return ["nsenter", mounts, f"--setuid={self.uid}", f"--setgid={self.uid}", "--", *command]

    def path_for(self, path: Path) -> Path:
        """The path at which this user finds a path of the machine."""
        for number, place in enumerate(self.places):
            if path.is_relative_to(place):
                return _STAGING_FOLDER / str(number) / path.relative_to(place)
        return path

    def give(self, *pipes: IO[bytes] | FileIO | None) -> None:
        """Make the user own the pipes, so that it can open them by name (/dev/stdout)."""
        for pipe in pipes:
            if self.uid is not None and pipe is not None:
                os.fchown(pipe.fileno(), self.uid, self.uid)

    def close(self) -> None:
        if self.is_separate:
            os.close(self.mounts)


CURRENT_USER = SandboxUser()


@dataclass(slots=True)
class SandboxUsers:
    """The users in use, by the paths that they were prepared for; the least recently used are dropped."""

    users: OrderedDict[tuple[object, ...], SandboxUser] = field(
        default_factory=OrderedDict[tuple[object, ...], SandboxUser]
    )
    count: int = 0

    async def user_for(self, paths: Iterable[Path]) -> SandboxUser:
        """The user for these paths, the workspace first; CURRENT_USER if we are not root or cannot prepare one."""
        if os.geteuid() != 0:
            return CURRENT_USER
        stamps = [(path, path.stat()) for path in paths if path.exists()]
        key = tuple((path, status.st_dev, status.st_ino, status.st_uid) for path, status in stamps)
        if key not in self.users:
            self.count += 1
            uid = _FIRST_UID + os.getpid() * _USERS_PER_PROCESS + self.count % _USERS_PER_PROCESS
            prepared = await to_thread.run_sync(_prepare_user, uid, tuple(path for path, _ in stamps))
            if self.users.setdefault(key, prepared) is not prepared:
                prepared.close()
        self.users.move_to_end(key)
        while len(self.users) > _MAX_USERS:
            self.users.popitem(last=False)[1].close()
        return self.users[key]


def _prepare_user(uid: int, paths: tuple[Path, ...]) -> SandboxUser:
    if shutil.which("nsenter") is None:
        return CURRENT_USER
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-I", "-S", str(_STAGING), str(theirs.fileno()), str(uid)]
        try:
            finished = subprocess.run(
                [*command, *map(str, paths)],
                pass_fds=(theirs.fileno(),),
                env={},
                start_new_session=True,  # Ctrl-C on the terminal is for Septet, not for an unfinished namespace
                timeout=_TIMEOUT,
                capture_output=True,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SandboxFailed(
                f"the sandbox was not ready within {_TIMEOUT:g} seconds, the machine is too busy", BUSY_REMEDY
            ) from error
        if finished.returncode != 0:
            return CURRENT_USER
        _, descriptors, _, _ = socket.recv_fds(ours, 64, 1)
    return SandboxUser(uid, descriptors[0], paths)
