"""Prepares a mount namespace in which a separate user owns the workspace: a program, run as root.

Run as `python -I -S mount_staging.py SOCKET UID PATH…`. Sends the descriptor of a mount namespace over the socket, in
which /tmp/0, /tmp/1 … are the paths, idmapped: files of a path's owner belong to UID. Ownership changes only in that
namespace. The first path is the workspace and must be mapped; the others may remain unmapped.
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
_SYS_OPEN_TREE, _SYS_MOVE_MOUNT, _SYS_MOUNT_SETATTR = 428, 429, 442
_OPEN_TREE_CLONE_CLOEXEC, _AT_FDCWD, _AT_EMPTY_PATH, _MOVE_MOUNT_F_EMPTY_PATH = 0o2000001, -100, 0x1000, 4
_MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV, _MOUNT_ATTR_IDMAP = 2, 4, 0x100000
_STAGE = b"/tmp"

_kernel = ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def owner_map(status: os.stat_result, user: int) -> int:
    """A descriptor of a user namespace that maps this owner and group to the user."""
    ready_read, ready_write = os.pipe()
    holder = os.fork()
    if holder == 0:
        _check(_kernel.unshare(_CLONE_NEWUSER))
        os.write(ready_write, b".")
        signal.pause()
    try:
        os.close(ready_write)
        if not os.read(ready_read, 1):
            raise OSError("no user namespace")
        for name, owner in (("uid_map", status.st_uid), ("gid_map", status.st_gid)):
            with open(f"/proc/{holder}/{name}", "w") as file:
                file.write(f"{owner} {user} 1\n")
        return os.open(f"/proc/{holder}/ns/user", os.O_RDONLY)
    finally:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        os.close(ready_read)


def idmapped_mount(path: str, user: int, needed: bool) -> int:
    """A descriptor of a detached mount of the path, idmapped to the user."""
    tree = _check(_kernel.syscall(_SYS_OPEN_TREE, _AT_FDCWD, os.fsencode(path), _OPEN_TREE_CLONE_CLOEXEC))
    user_namespace = owner_map(os.fstat(tree), user)
    attributes = struct.pack(
        "=QQQQ", _MOUNT_ATTR_IDMAP | _MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV, 0, 0, user_namespace
    )
    result = _kernel.syscall(_SYS_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, attributes, len(attributes))
    os.close(user_namespace)
    if needed:
        _check(result)
    return tree


def stage(user: int, paths: list[str]) -> int:
    _check(_kernel.unshare(_CLONE_NEWNS))
    _check(_kernel.mount(b"none", b"/", None, _MS_REC | _MS_SLAVE, None))
    mounts = [idmapped_mount(path, user, needed=number == 0) for number, path in enumerate(paths)]
    _check(_kernel.mount(b"tmpfs", _STAGE, b"tmpfs", _MS_NOSUID | _MS_NODEV, b"mode=755,size=1m"))
    for number, mount in enumerate(mounts):
        target = _STAGE + b"/%d" % number
        if stat.S_ISDIR(os.fstat(mount).st_mode):
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
        _check(_kernel.syscall(_SYS_MOVE_MOUNT, mount, b"", _AT_FDCWD, target, _MOVE_MOUNT_F_EMPTY_PATH))
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
