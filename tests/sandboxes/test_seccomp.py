"""The filter of system calls: the kernel's own numbers, and what a program may do, call by call."""

import re
from pathlib import Path

import pytest
from sandboxes.system_calls import (
    ALLOW,
    ARCHITECTURES,
    ARGUMENTS,
    EAFNOSUPPORT,
    ENOSYS,
    EPERM,
    ERRNO,
    KILL,
    NUMBERS,
    SETUID,
    TMPFILE,
    decide,
)

from septet.sandboxes import seccomp

NAMED = {**seccomp.REFUSED, **seccomp.ABSENT, **seccomp._IGNORED, **seccomp._UNCOUNTED_MEMORY}  # pyright: ignore[reportPrivateUsage]  # the tables are what is tested
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
DEFINITION = re.compile(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", re.MULTILINE)


@pytest.mark.parametrize(("column", "machine"), list(enumerate(HEADERS)))
def test_every_number_is_the_kernels(column: int, machine: str) -> None:
    header = HEADERS[machine]
    if not header.exists():
        pytest.skip("the kernel's headers are not installed")
    kernel = {name: int(number) for name, number in DEFINITION.findall(header.read_text())}
    numbers = {name: found[column] for name, found in NAMED.items()}
    wrong = {name: one for name, one in numbers.items() if kernel.get(name, one) != one}
    missing = {name for name, one in numbers.items() if one is None and name in kernel}
    assert (wrong, missing) == ({}, set())
    assert len(kernel.keys() & numbers.keys()) > len(numbers) // 2


UNCOUNTED = {"x86_64": (29, 68, 319, 447), "aarch64": (194, 186, 279, 447)}
"""shmget, msgget, memfd_create, memfd_secret."""

each_machine = pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
STREAM, DATAGRAM, NONBLOCKING = 1, 2, 0o4000


def said(program: bytes, machine: str, call: str, *arguments: int) -> int:
    return decide(program, ARCHITECTURES[machine], NUMBERS[machine][call], arguments)


@each_machine
def test_calls_are_allowed_by_what_they_ask_for(machine: str) -> None:
    program = seccomp.filter_program(machine)
    expected = {(call, given): action for (call, given), action in ARGUMENTS if call in NUMBERS[machine]}
    found = {(call, given): said(program, machine, call, *given) for call, given in expected}
    assert found == expected
    assert said(program, machine, "openat", 0, 0, TMPFILE, SETUID) == EPERM
    assert said(program, machine, "read", 0) == ALLOW


@each_machine
def test_dangerous_calls_are_refused_and_new_ones_are_absent(machine: str) -> None:
    program = seccomp.filter_program(machine)
    column = ["x86_64", "aarch64"].index(machine)
    for calls, action in ((seccomp.REFUSED, EPERM), (seccomp.ABSENT, ENOSYS)):
        for name, numbers in calls.items():
            if (number := numbers[column]) is not None:
                assert (name, decide(program, ARCHITECTURES[machine], number)) == (name, action)


@each_machine
def test_memory_that_nobody_counts_is_absent(machine: str) -> None:
    architecture, numbers = ARCHITECTURES[machine], UNCOUNTED[machine]
    uncounted, counted = (
        seccomp.filter_program(machine, memory_counted=counted) for counted in (False, True)
    )
    assert {decide(uncounted, architecture, one) for one in numbers} == {ENOSYS}
    assert {decide(counted, architecture, one) for one in numbers} == {ALLOW}


@each_machine
def test_without_mounts_there_are_no_sockets_and_no_changes_of_modes(machine: str) -> None:
    program = seccomp.filter_program(machine, has_mounts=False)
    assert {said(program, machine, "socket", family, STREAM) for family in range(46)} == {EAFNOSUPPORT}
    assert said(program, machine, "socketpair", 1, STREAM | NONBLOCKING) == ALLOW
    assert said(program, machine, "socketpair", 1, DATAGRAM) == EAFNOSUPPORT
    assert said(program, machine, "socketpair", 2, STREAM) == EAFNOSUPPORT
    assert said(program, machine, "fchmod", 0, 0o755) == ERRNO, "it does nothing, and says that it did"
    assert said(program, machine, "fchmod", 0, SETUID) == EPERM
    assert said(seccomp.filter_program(machine), machine, "fchmod", 0, 0o755) == ALLOW


@each_machine
def test_with_mounts_a_pair_of_sockets_is_of_this_machine(machine: str) -> None:
    program = seccomp.filter_program(machine)
    families = {
        family for family in range(46) if said(program, machine, "socketpair", family, DATAGRAM) == ALLOW
    }
    assert families == {1}


@each_machine
def test_a_call_of_another_architecture_ends_the_process(machine: str) -> None:
    program = seccomp.filter_program(machine)
    for name, architecture in {**ARCHITECTURES, "i386": 0x40000003}.items():
        expected = ALLOW if name == machine else KILL
        assert decide(program, architecture, NUMBERS[machine]["read"]) == expected


def test_a_call_in_the_numbers_of_x32_ends_the_process() -> None:
    program = seccomp.filter_program("x86_64")
    for number, expected in {0x40000000: KILL, 0x40000000 + 101: KILL, 0x3FFFFFFF: ALLOW}.items():
        assert decide(program, ARCHITECTURES["x86_64"], number) == expected


def test_this_machines_filter_is_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    seccomp.filter_program.cache_clear()
    assert seccomp.filter_program() == seccomp.filter_program("aarch64") != seccomp.filter_program("x86_64")
    assert seccomp.is_supported()
    assert [one for one in ("x86_64", "aarch64", "riscv64") if seccomp.is_supported(one)] == [
        "x86_64",
        "aarch64",
    ]
    seccomp.filter_program.cache_clear()
