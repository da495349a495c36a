"""Which limit ended a program, where the program itself met it rather than the watch."""

import re
import signal

from septet.domain.runs import Bound, Limits
from septet.sandboxes.workspace import Survey

_BYTES_PER_ENTRY = 20_000
"""A gigabyte may be some 50,000 files: entries take room that no file's size shows."""

_SIGNALS: dict[int, Bound] = {128 + signal.SIGXCPU: "cpu", 128 + signal.SIGXFSZ: "file size"}
_OUT_OF_MEMORY = re.compile(r"(?:[\w.]*\bMemoryError|[\w.]*_ArrayMemoryError|std::bad_alloc)\b")
_TOO_MANY_FILES = "Too many open files"


def bound_of(exit_code: int, stderr: str, after: Survey, limits: Limits) -> Bound | None:
    """A program that succeeded met no limit; one that failed did if its end says so."""
    if exit_code == 0:
        return None
    if exit_code in _SIGNALS:
        return _SIGNALS[exit_code]
    if any(stamp.size >= limits.file_size for stamp in after.files.values()):
        return "file size"
    last = _last_line(stderr)
    if _OUT_OF_MEMORY.match(last):
        return "memory"
    return "open files" if _TOO_MANY_FILES in last else None


def _last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2]


def outgrown(before: Survey, after: Survey, limits: Limits) -> bool:
    """Whether a workspace grew past the limit in space or in number of entries."""
    entries = limits.disk // _BYTES_PER_ENTRY
    return after.space - before.space > limits.disk or after.entries - before.entries > entries
