"""Prepares the mounts through which root's programs run as a user of their own: a program, run as root.

Called as `python -I -S staging.py SOCKET UID PATH…`. Sends the descriptor of a mount namespace over the socket,
in which /tmp/0, /tmp/1 … are the paths, in their order, and what the owner of a path owns there is UID's. Only
what happens through that namespace is changed. The first path is the workspace; the others may stay as they are.
"""

import ctypes
import os
import signal
import socket
import stat
import struct
import sys

_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_SLAVE = 2, 4, 0x4000, 0x80000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_OPEN_TREE_CLONE, _AT_FDCWD, _AT_EMPTY_PATH, _MOVE_FROM_DESCRIPTOR = 0o2000001, -100, 0x1000, 4
_NOSUID, _NODEV, _IDMAP = 2, 4, 0x100000
_STAGE = b"/tmp"

_kernel = ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def owner_map(status: os.stat_result, user: int) -> int:
    """A descriptor of a user namespace that says: what this owner and group own is the user's."""
    ready, told = os.pipe()
    holder = os.fork()
    if holder == 0:
        _check(_kernel.unshare(_CLONE_NEWUSER))
        os.write(told, b".")
        signal.pause()
    try:
        os.close(told)
        if not os.read(ready, 1):
            raise OSError("no user namespace")
        for name, owner in (("uid_map", status.st_uid), ("gid_map", status.st_gid)):
            with open(f"/proc/{holder}/{name}", "w") as file:
                file.write(f"{owner} {user} 1\n")
        return os.open(f"/proc/{holder}/ns/user", os.O_RDONLY)
    finally:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        os.close(ready)


def view_of(path: str, user: int, needed: bool) -> int:
    """A descriptor of the path as a mount of its own, given to the user."""
    tree = _check(_kernel.syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(path), _OPEN_TREE_CLONE))
    owners = owner_map(os.fstat(tree), user)
    setting = struct.pack("=QQQQ", _IDMAP | _NOSUID | _NODEV, 0, 0, owners)
    result = _kernel.syscall(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, setting, len(setting))
    os.close(owners)
    if needed:
        _check(result)
    return tree


def stage(user: int, paths: list[str]) -> int:
    _check(_kernel.unshare(_CLONE_NEWNS))
    _check(_kernel.mount(b"none", b"/", None, _MS_REC | _MS_SLAVE, None))
    views = [view_of(path, user, needed=number == 0) for number, path in enumerate(paths)]
    _check(_kernel.mount(b"tmpfs", _STAGE, b"tmpfs", _MS_NOSUID | _MS_NODEV, b"mode=755,size=1m"))
    for number, view in enumerate(views):
        place = _STAGE + b"/%d" % number
        if stat.S_ISDIR(os.fstat(view).st_mode):
            os.mkdir(place)
        else:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY))
        _check(_kernel.syscall(_MOVE_MOUNT, view, b"", _AT_FDCWD, place, _MOVE_FROM_DESCRIPTOR))
    return os.open("/proc/self/ns/mnt", os.O_RDONLY)


def main(arguments: list[str]) -> int:
    with socket.socket(fileno=int(arguments[0])) as channel:
        try:
            mounts = stage(int(arguments[1]), arguments[2:])
        except OSError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        socket.send_fds(channel, [b"."], [mounts])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
