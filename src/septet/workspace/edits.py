"""Edits of a text by line numbers or by exact text; an edit that does not fit is refused."""

import difflib

from septet.common.text import unified_diff
from septet.domain.plans import Refusal


def insert_lines(text: str, line: int, code: str) -> str | Refusal:
    """Insert `code` before the line; the number after the last line appends."""
    lines = split_lines(text)
    if not 1 <= line <= len(lines) + 1:
        return Refusal(reason=f"line {line} is not in 1 to {len(lines) + 1}")
    return join_lines([*with_newline(lines[: line - 1]), *new_lines(code, text), *lines[line - 1 :]])


def replace_lines(text: str, start: int, end: int, code: str) -> str | Refusal:
    """Replace the lines from `start` to `end`, both included, by `code`."""
    lines = split_lines(text)
    trouble = outside(start, end, len(lines))
    return trouble or join_lines([*with_newline(lines[: start - 1]), *new_lines(code, text), *lines[end:]])


def remove_lines(text: str, start: int, end: int) -> str | Refusal:
    """Remove the lines from `start` to `end`, both included."""
    lines = split_lines(text)
    return outside(start, end, len(lines)) or join_lines([*lines[: start - 1], *lines[end:]])


def replace_text(text: str, old: str, new: str) -> str | Refusal:
    """Replace `old`, which must occur exactly once, by `new`."""
    if not old:
        return Refusal(reason="the text to look for is empty")
    count = text.count(old)
    if count == 1:
        return text.replace(old, new)
    if count:
        return Refusal(reason=f"the text to look for stands there {count} times; quote more of it")
    near = nearest(text, old)
    return Refusal(
        reason="the text to look for does not stand there" + (f"; nearest is:\n{near}" if near else "")
    )


def outside(start: int, end: int, count: int) -> Refusal | None:
    if 1 <= start <= end <= count:
        return None
    return Refusal(reason=f"lines {start} to {end} are not in 1 to {count}" if count else "the file is empty")


def split_lines(text: str) -> list[str]:
    """Split lines as editors do: only at line feeds."""
    lines = text.split("\n")
    whole = [line + "\n" for line in lines[:-1]]
    return [*whole, lines[-1]] if lines[-1] else whole


def new_lines(code: str, text: str) -> list[str]:
    """The new lines, with the line endings of the file."""
    code = code.replace("\r\n", "\n")
    code = code if not code or code.endswith("\n") else code + "\n"
    return [code.replace("\n", "\r\n") if "\r\n" in text else code]


def with_newline(lines: list[str]) -> list[str]:
    """Make sure that the last line ends with a line feed, since other lines follow."""
    return [*lines[:-1], lines[-1] if lines[-1].endswith("\n") else lines[-1] + "\n"] if lines else []


def join_lines(lines: list[str]) -> str:
    return "".join(lines)


def nearest(text: str, old: str) -> str:
    """The lines that are most similar to the text that was not found."""
    lines = text.splitlines()
    wanted = old.strip("\n").splitlines()
    first = difflib.get_close_matches(wanted[0] if wanted else "", lines, n=1, cutoff=0.6)
    place = lines.index(first[0]) if first else 0
    return "\n".join(lines[place : place + len(wanted)]) if first else ""


def diff_text(path: str, old: str | None, new: str | None) -> str:
    """A unified diff; None is a file that does not exist."""
    before = diff_lines(old)
    after = diff_lines(new)
    left = "/dev/null" if old is None else f"a/{path}"
    right = "/dev/null" if new is None else f"b/{path}"
    return "".join(unified_diff(before, after, left, right))


def diff_lines(text: str | None) -> list[str]:
    return [
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
        for line in split_lines(text or "")
    ]
