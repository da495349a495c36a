"""Gives up everything that a program may not have, then becomes the program: for rungs without namespaces.

Run as `python -I -S landlocked.py FILTER READABLE… -- WRITABLE… -- COMMAND…`: FILTER is a system-call filter as
hexadecimal text. Only the paths named, and what is below them, can be opened from then on, by anybody below.
"""

import ctypes
import os
import struct
import sys

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_SET_NO_NEW_PRIVILEGES, _SET_SECCOMP, _BOUNDING_DROP, _AMBIENT = 38, 22, 24, 47
_O_PATH = 0o10000000
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER, _TRUNCATE, _IOCTL = 1, 2, 4, 8, 1 << 14, 1 << 15
_MAKE_CHARACTER, _MAKE_BLOCK = 1 << 6, 1 << 11
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_RIGHTS_OF_VERSION = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many rights on files each version of Landlock knows; 16 from the fifth on."""

_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))

_kernel = ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def version() -> int:
    """The version of Landlock that the kernel knows; 0 where there is none."""
    return max(0, _kernel.syscall(_CREATE, None, 0, 1))


def restrict(readable: list[str], writable: list[str]) -> None:
    known = version()
    handled = (1 << _RIGHTS_OF_VERSION.get(known, 16)) - 1
    rules = struct.pack("=QQQ", handled, 3 if known >= 4 else 0, 3 if known >= 6 else 0)
    size = 24 if known >= 6 else 16 if known >= 4 else 8
    ruleset = _check(_kernel.syscall(_CREATE, rules, size, 0))
    reading = _EXECUTE | _READ_FILE | _READ_FOLDER
    changing = handled & ~(_MAKE_CHARACTER | _MAKE_BLOCK | _IOCTL)
    for path in readable:
        _allow(ruleset, path, reading & handled)
    for path in writable:
        _allow(ruleset, path, changing)
    for path in _DEVICES:
        _allow(ruleset, path, (_READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL) & handled)
    _check(_kernel.syscall(_RESTRICT, ruleset, 0))
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, _O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):
        rights &= _FILE_RIGHTS
    rule = struct.pack("=Qi", rights, place)
    _check(_kernel.syscall(_ADD, ruleset, 1, rule, 0))
    os.close(place)


def drop_privileges() -> None:
    _check(_kernel.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    for capability in range(64):
        _kernel.prctl(_BOUNDING_DROP, capability, 0, 0, 0)
    _kernel.prctl(_AMBIENT, 4, 0, 0, 0)
    header, none = struct.pack("=Ii", 0x20080522, 0), bytes(24)
    _check(_kernel.capset(header, none))


def filter_calls(program: bytes) -> None:
    code = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    _check(_kernel.prctl(_SET_SECCOMP, 2, head, 0, 0))


def main(arguments: list[str]) -> int:
    calls, *rest = arguments
    first = rest.index("--")
    second = rest.index("--", first + 1)
    try:
        drop_privileges()
        restrict(rest[:first], rest[first + 1 : second])
        filter_calls(bytes.fromhex(calls))
    except OSError as error:
        os.write(2, f"septet-landlock: {error}\n".encode())
        return 125
    command = rest[second + 1 :]
    os.execvp(command[0], command)
    return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
