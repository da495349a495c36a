"""System calls that the filters of programs must allow or refuse, and a machine that runs a filter."""

import struct
from collections.abc import Sequence

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS, EAFNOSUPPORT = ERRNO | 1, ERRNO | 38, ERRNO | 97
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

NEW_NAMESPACES = {0x80, 0x20000, *(1 << bit for bit in range(25, 31))}
THREAD = 0x3D0F00
"""The flags with which a C library makes a thread."""

CREATE, TMPFILE = 0o100, 0o20000000
SETUID, SETGID = 0o4755, 0o2755

Call = tuple[str, tuple[int, ...]]

ARGUMENTS: list[tuple[Call, int]] = [
    (("clone", (THREAD,)), ALLOW),
    *((("clone", (1 << bit,)), EPERM if 1 << bit in NEW_NAMESPACES else ALLOW) for bit in range(32)),
    *((("socket", (family, 1)), ALLOW if family in (1, 2, 10, 16) else EAFNOSUPPORT) for family in range(46)),
    (("ioctl", (0, 0x5412)), EPERM),  # TIOCSTI types into a terminal
    (("ioctl", (0, 0x541C)), EPERM),  # TIOCLINUX too
    (("ioctl", (0, 0x5401)), ALLOW),
    (("ioctl", (0x5412, 0x5401)), ALLOW),
    *((("chmod", (0, mode)), EPERM) for mode in (SETUID, SETGID)),
    *((("fchmod", (0, mode)), EPERM) for mode in (SETUID, SETGID)),
    *((("fchmodat", (0, 0, mode)), EPERM) for mode in (SETUID, SETGID)),
    *((("fchmodat2", (0, 0, mode)), EPERM) for mode in (SETUID, SETGID)),
    *((("creat", (0, mode)), EPERM) for mode in (SETUID, SETGID)),
    *((("mknod", (0, mode)), EPERM) for mode in (SETUID, SETGID)),
    *((("mknodat", (0, 0, mode)), EPERM) for mode in (SETUID, SETGID)),
    *((("open", (0, CREATE, mode)), EPERM) for mode in (SETUID, SETGID)),
    *((("openat", (0, 0, CREATE, mode)), EPERM) for mode in (SETUID, SETGID)),
    (("open", (0, 0, SETUID)), ALLOW),  # not created: the mode says nothing
    (("openat", (0, 0, 0, SETUID)), ALLOW),
    (("openat", (CREATE, SETUID, 0, 0)), ALLOW),
    *(((name, (SETUID, 0o755)), ALLOW) for name in ("chmod", "fchmod", "creat", "mknod")),
    *(((name, (SETUID, SETUID, 0o755)), ALLOW) for name in ("fchmodat", "fchmodat2", "mknodat")),
    (("open", (SETUID, CREATE, 0o755)), ALLOW),
    (("openat", (SETUID, SETUID, CREATE, 0o755)), ALLOW),
]
"""Calls that depend on their arguments."""

NUMBERS = {
    "x86_64": {
        "read": 0, "open": 2, "ioctl": 16, "socket": 41, "socketpair": 53, "clone": 56, "creat": 85,
        "chmod": 90, "fchmod": 91, "mknod": 133, "openat": 257, "mknodat": 259, "fchmodat": 268, "fchmodat2": 452,
    },
    "aarch64": {
        "read": 63, "ioctl": 29, "socket": 198, "socketpair": 199, "clone": 220,
        "fchmod": 52, "openat": 56, "mknodat": 33, "fchmodat": 53, "fchmodat2": 452,
    },
}  # fmt: skip


def decide(program: bytes, architecture: int, number: int, arguments: Sequence[int] = ()) -> int:
    """What a filter in classic BPF says of a call, as the kernel reads it."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, architecture, 0, *padded)
    steps, at, value = list(struct.iter_unpack("=HBBI", program)), 0, 0
    while True:
        code, when_true, when_false, operand = steps[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, operand)
            case 0x15:
                at += when_true if value == operand else when_false
            case 0x35:
                at += when_true if value >= operand else when_false
            case 0x45:
                at += when_true if value & operand else when_false
            case 0x06:
                return operand
            case _:
                raise AssertionError(f"{code:#x} is not used by a filter of ours")
