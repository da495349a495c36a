"""The system-call filter as container engines want it: the same calls as in `seccomp`, named in a JSON profile."""

import json
from collections.abc import Iterator
from functools import cache

from septet.sandboxes import seccomp

_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_FAMILIES_REFUSED = sorted({*range(17)} - {*seccomp.FAMILIES})
_LAST_FAMILY = 16
_MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
_OPENING = {"open": (1, 2), "openat": (2, 3)}
_CREATE, _SET_IDS = 0o100, (0o4000, 0o2000)

Argument = dict[str, int | str]
Rule = dict[str, object]


@cache
def profile() -> str:
    """What is not named is allowed; what runs under it also has no capability and no way to get one."""
    rules = [
        _rule([*seccomp.REFUSED], _EPERM),
        _rule([*seccomp.ABSENT], _ENOSYS),
        *_namespaces(),
        *_sockets(),
        *(_rule(["ioctl"], _EPERM, _equal(1, code)) for code in seccomp.TERMINAL_INJECTION),
        *_set_ids(),
    ]
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules})


def _rule(names: list[str], error: int, *arguments: Argument) -> Rule:
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": error, "args": [*arguments]}


def _equal(index: int, value: int) -> Argument:
    return {"index": index, "value": value, "op": "SCMP_CMP_EQ"}


def _has(index: int, bit: int) -> Argument:
    return {"index": index, "value": bit, "valueTwo": bit, "op": "SCMP_CMP_MASKED_EQ"}


def _namespaces() -> Iterator[Rule]:
    for place in range(32):
        if seccomp.NEW_NAMESPACES >> place & 1:
            yield _rule(["clone"], _EPERM, _has(0, 1 << place))


def _sockets() -> Iterator[Rule]:
    beyond: Argument = {"index": 0, "value": _LAST_FAMILY, "op": "SCMP_CMP_GT"}
    yield _rule(["socket"], _EAFNOSUPPORT, beyond)
    for family in _FAMILIES_REFUSED:
        yield _rule(["socket"], _EAFNOSUPPORT, _equal(0, family))


def _set_ids() -> Iterator[Rule]:
    for bit in _SET_IDS:
        for name, place in _MODES.items():
            yield _rule([name], _EPERM, _has(place, bit))
        for name, (flags, mode) in _OPENING.items():
            yield _rule([name], _EPERM, _has(flags, _CREATE), _has(mode, bit))
