"""The second rung: a Python program of ours does what bubblewrap does, if that is not installed."""

import platform
import sys
from functools import cache
from pathlib import Path

from septet.errors import NoSandbox
from septet.sandboxes import seccomp
from septet.sandboxes.rungs.bubblewrap import Bubblewrap

_PROGRAM = Path(__file__).parents[1] / "inside" / "namespaces.py"
_MIN_KERNEL = (5, 12)


def detect() -> Bubblewrap:
    """The same sandbox with another builder. It is slower, because it starts an interpreter before each program."""
    if sys.platform != "linux" or not seccomp.is_supported():
        raise NoSandbox("there are no namespaces on this system", "use a container")
    if _kernel_version() < _MIN_KERNEL:
        raise NoSandbox(
            "the kernel is too old for this rung", "use Linux 5.12 or later, or install bubblewrap"
        )
    program = str(Path(sys.executable).resolve())
    return Bubblewrap(program, rung="namespaces", arguments=("-I", "-S", "-c", _source()))


def _kernel_version() -> tuple[int, ...]:
    return tuple(int(number) for number in platform.release().split("-")[0].split(".")[:2])


@cache
def _source() -> str:
    return _PROGRAM.read_text()
