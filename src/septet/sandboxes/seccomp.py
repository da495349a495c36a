"""Builds the system-call filter as classic BPF bytes, without a library; bubblewrap loads it from a descriptor."""

import platform
import struct
from collections.abc import Iterator, Mapping
from functools import cache

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_X32_SYSCALL_BIT = 0x40000000

NEW_NAMESPACES = 0x7E020080
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET and NEWTIME."""

FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK; AF_VSOCK for one ignores the network namespace."""

_AF_UNIX, _NOT_STREAM_BIT = 1, 2
"""AF_UNIX; and the bit of socket types (datagram and others) that can address another peer later."""

TERMINAL_INJECTION = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX can type into another process's terminal."""

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# number on x86_64, number on aarch64 (None if it does not exist)
REFUSED: dict[str, tuple[int, int | None]] = {
    "ptrace": (101, 117),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "modify_ldt": (154, None),
    "pivot_root": (155, 41),
    "adjtimex": (159, 171),
    "chroot": (161, 51),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "mount": (165, 40),
    "umount2": (166, 39),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "init_module": (175, 105),
    "delete_module": (176, 106),
    "quotactl": (179, 60),
    "lookup_dcookie": (212, 18),
    "clock_settime": (227, 112),
    "kexec_load": (246, 104),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "migrate_pages": (256, 238),
    "unshare": (272, 97),
    "move_pages": (279, 239),
    "perf_event_open": (298, 241),
    "fanotify_init": (300, 262),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "clock_adjtime": (305, 266),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "finit_module": (313, 273),
    "kexec_file_load": (320, 294),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "pidfd_getfd": (438, 438),
    "quotactl_fd": (443, 443),
}
# ENOSYS rather than EPERM: programs then fall back to older calls.
ABSENT: dict[str, tuple[int, int | None]] = {
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "clone3": (435, 435),
    "mount_setattr": (442, 442),
    "process_madvise": (440, 440),
    "open_tree_attr": (467, 467),
    "openat2": (437, 437),
}
# Calls that change files without opening them: they succeed without effect if no mount protects the machine's files.
_IGNORED: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "utime": (132, None),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "utimes": (235, None),
    "fchownat": (260, 54),
    "futimesat": (261, None),
    "fchmodat": (268, 53),
    "utimensat": (280, 88),
    "fchmodat2": (452, 452),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
}
# Memory that is in no process's resident size: refused if no cgroup counts it.
_UNCOUNTED_MEMORY: dict[str, tuple[int, int | None]] = {
    "shmget": (29, 194),
    "msgget": (68, 186),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
}
# Calls with a file mode: (number on x86_64, on aarch64, index of the flags argument or None, index of the mode).
_MODE_CALLS: tuple[tuple[int | None, int | None, int | None, int], ...] = (
    (90, None, None, 1),  # chmod
    (91, 52, None, 1),  # fchmod
    (268, 53, None, 2),  # fchmodat
    (452, 452, None, 2),  # fchmodat2
    (85, None, None, 1),  # creat
    (133, None, None, 1),  # mknod
    (259, 33, None, 2),  # mknodat
    (2, None, 1, 2),  # open
    (257, 56, 2, 3),  # openat
)
_CREATE_FLAGS = 0x400040
"""O_CREAT and O_TMPFILE: only with these does opening a file take a mode."""

_SET_ID_BITS = 0o6000
"""Set-user-id and set-group-id: such a file would be dangerous on the machine outside."""

_CLONE, _SOCKET, _SOCKETPAIR, _IOCTL = (56, 220), (41, 198), (53, 199), (16, 29)


def is_supported(machine: str = "") -> bool:
    """Whether there is a filter for this processor."""
    return (machine or platform.machine()) in _AUDIT_ARCH


@cache
def filter_program(machine: str = "", memory_counted: bool = False, has_mounts: bool = True) -> bytes:
    """The filter for this machine.

    `memory_counted`: a control group counts all memory, so that no kind is refused. Without `has_mounts`, no namespace
    separates the machine's sockets and files: only connected socket pairs are allowed, and changes of a file's mode,
    owner, times or attributes have no effect.
    """
    machine = machine or platform.machine()
    refused = _numbers(REFUSED, machine)
    absent = _numbers(ABSENT if memory_counted else ABSENT | _UNCOUNTED_MEMORY, machine)
    steps = [*_prologue(machine), *_argument_rules(machine, FAMILIES if has_mounts else ())]
    steps.append(_step(_LOAD, _NUMBER_OFFSET))
    ignored = [] if has_mounts else _numbers(_IGNORED, machine)
    for numbers, error in ((ignored, 0), (refused, _EPERM), (absent, _ENOSYS)):
        for number in numbers:
            steps += [_step(_JUMP_EQUAL, number, 0, 1), _step(_RETURN, _ERRNO | error)]
    steps.append(_step(_RETURN, _ALLOW))
    return b"".join(steps)


def _numbers(calls: Mapping[str, tuple[int | None, int | None]], machine: str) -> list[int]:
    column = 0 if machine == "x86_64" else 1
    return [number for call in calls.values() if (number := call[column]) is not None]


def _prologue(machine: str) -> Iterator[bytes]:
    """Kill a process that makes calls of another architecture, because those have other numbers."""
    yield _step(_LOAD, _ARCHITECTURE_OFFSET)
    yield _step(_JUMP_EQUAL, _AUDIT_ARCH[machine], 1, 0)
    yield _step(_RETURN, _KILL)
    if machine == "x86_64":
        yield _step(_LOAD, _NUMBER_OFFSET)
        yield _step(_JUMP_AT_LEAST, _X32_SYSCALL_BIT, 0, 1)
        yield _step(_RETURN, _KILL)


def _argument_rules(machine: str, families: tuple[int, ...]) -> Iterator[bytes]:
    """Rules for calls that are allowed with some arguments only."""
    column = 0 if machine == "x86_64" else 1
    yield from _block(_CLONE[column], 0, [_step(_JUMP_ANY_BIT, NEW_NAMESPACES, 0, 1), _errno(_EPERM)])
    allowed = [_step(_JUMP_EQUAL, family, len(families) - index, 0) for index, family in enumerate(families)]
    yield from _block(_SOCKET[column], 0, [*allowed, _errno(_EAFNOSUPPORT)])
    if not families:
        yield from _block(
            _SOCKETPAIR[column], 1, [_step(_JUMP_ANY_BIT, _NOT_STREAM_BIT, 0, 1), _errno(_EAFNOSUPPORT)]
        )
    unix_only = [_step(_JUMP_EQUAL, _AF_UNIX, 1, 0), _errno(_EAFNOSUPPORT)]
    yield from _block(_SOCKETPAIR[column], 0, unix_only)
    refused = [
        piece for code in TERMINAL_INJECTION for piece in (_step(_JUMP_EQUAL, code, 0, 1), _errno(_EPERM))
    ]
    yield from _block(_IOCTL[column], 1, refused)
    for *calls, flags, mode in _MODE_CALLS:
        if (number := calls[column]) is not None:
            yield from _mode_block(number, flags, mode)


def _mode_block(number: int, flags: int | None, mode: int) -> Iterator[bytes]:
    check = [_step(_JUMP_ANY_BIT, _SET_ID_BITS, 0, 1), _errno(_EPERM)]
    if flags is None:
        yield from _block(number, mode, check)
    else:
        creating = [_step(_JUMP_ANY_BIT, _CREATE_FLAGS, 0, 3), _step(_LOAD, _ARGUMENTS_OFFSET + 8 * mode)]
        yield from _block(number, flags, [*creating, *check])


def _block(number: int, argument: int, checks: list[bytes]) -> Iterator[bytes]:
    yield _step(_LOAD, _NUMBER_OFFSET)
    yield _step(_JUMP_EQUAL, number, 0, len(checks) + 1)
    yield _step(_LOAD, _ARGUMENTS_OFFSET + 8 * argument)
    yield from checks


def _errno(error: int) -> bytes:
    return _step(_RETURN, _ERRNO | error)


def _step(code: int, value: int, when_true: int = 0, when_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, when_true, when_false, value)
