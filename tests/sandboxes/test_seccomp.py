"""The numbers of system calls that the filter names are those of the kernel's own headers."""

import re
from pathlib import Path

import pytest

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
