"""Drops privileges, restricts itself by Landlock and seccomp, then execs the program: for the rung `landlock`.

Run as `python -I -S landlock.py FILTER READABLE… -- WRITABLE… -- COMMAND…`: FILTER is a system-call filter as
hexadecimal text. The program and its children can open only the paths named and what is below them.
"""

import ctypes
import os
import struct
import sys

_SYS_LANDLOCK_CREATE_RULESET, _SYS_LANDLOCK_ADD_RULE, _SYS_LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_CREATE_RULESET_VERSION, _LANDLOCK_RULE_PATH_BENEATH = 1, 1
_PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 22, 24, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL, _SECCOMP_MODE_FILTER, _LINUX_CAPABILITY_VERSION_3 = 4, 2, 0x20080522
_SETUP_FAILED = 125
_O_PATH = 0o10000000
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER, _TRUNCATE, _IOCTL = 1, 2, 4, 8, 1 << 14, 1 << 15
_MAKE_CHARACTER, _MAKE_BLOCK = 1 << 6, 1 << 11
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_RIGHTS_OF_VERSION = {1: 13, 2: 14, 3: 15, 4: 15}
"""The number of file rights in each version of Landlock; 16 from version 5 on."""

_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))

_kernel = ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def version() -> int:
    """The kernel's Landlock version; 0 if it has none."""
    return max(0, _kernel.syscall(_SYS_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_CREATE_RULESET_VERSION))


def restrict(readable: list[str], writable: list[str]) -> None:
    landlock_version = version()
    handled = (1 << _RIGHTS_OF_VERSION.get(landlock_version, 16)) - 1
    attributes = struct.pack(
        "=QQQ", handled, 3 if landlock_version >= 4 else 0, 3 if landlock_version >= 6 else 0
    )
    size = 24 if landlock_version >= 6 else 16 if landlock_version >= 4 else 8
    ruleset = _check(_kernel.syscall(_SYS_LANDLOCK_CREATE_RULESET, attributes, size, 0))
    read_rights = _EXECUTE | _READ_FILE | _READ_FOLDER
    write_rights = handled & ~(_MAKE_CHARACTER | _MAKE_BLOCK | _IOCTL)
    for path in readable:
        _allow(ruleset, path, read_rights & handled)
    for path in writable:
        _allow(ruleset, path, write_rights)
    for path in _DEVICES:
        _allow(ruleset, path, (_READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL) & handled)
    _check(_kernel.syscall(_SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, _O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):
        rights &= _FILE_RIGHTS
    rule = struct.pack("=Qi", rights, descriptor)
    _check(_kernel.syscall(_SYS_LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_RULE_PATH_BENEATH, rule, 0))
    os.close(descriptor)


def drop_privileges() -> None:
    _check(_kernel.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    for capability in range(64):
        _kernel.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _kernel.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header, none = struct.pack("=Ii", _LINUX_CAPABILITY_VERSION_3, 0), bytes(24)
    _check(_kernel.capset(header, none))


def filter_calls(program: bytes) -> None:
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    _check(_kernel.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0))


def main(arguments: list[str]) -> int:
    call_filter, *rest = arguments
    first_separator = rest.index("--")
    second_separator = rest.index("--", first_separator + 1)
    try:
        drop_privileges()
        restrict(rest[:first_separator], rest[first_separator + 1 : second_separator])
        filter_calls(bytes.fromhex(call_filter))
    except OSError as error:
        os.write(2, f"septet-landlock: {error}\n".encode())
        return _SETUP_FAILED
    command = rest[second_separator + 1 :]
    os.execvp(command[0], command)
    return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
