"""Changes to a file as models write them: SEARCH/REPLACE blocks, unified diffs and single definitions.

Each is applied exactly, or refused.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from textwrap import dedent

from septet.common.values import Value
from septet.domain.plans import Refusal

SEARCH = re.compile(r"^<{5,9} ?SEARCH\b")
DIVIDER = re.compile(r"^={5,9}$")
REPLACE = re.compile(r"^>{5,9} ?REPLACE\b")
HUNK = re.compile(r"^@@(?: (?:-(?P<line>\d+))?|$)")
HEADERS = ("diff --git ", "index ", "--- ", "+++ ", "new file mode ", "old mode ", "new mode ")
NOWHERE = "/dev/null"
QUOTED_LINES = 3
UNSEEN = "'{}' is not among the files that you have seen, so it cannot be changed; send it whole"


class Hunk(Value):
    """Lines that become other lines; `line` is where the old ones begin, as far as a diff says so."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    line: int = 0


def is_patch(text: str) -> bool:
    """Whether a text is a change and not a whole file."""
    first, second = ([line for line in text.split("\n") if line.strip()] + ["", ""])[:2]
    header = first.startswith("--- ") and second.startswith("+++ ")
    return bool(SEARCH.match(first) or HUNK.match(first) or first.startswith("diff --git ") or header)


def patched_path(text: str) -> str:
    """The file that a diff's header names; empty where it has none."""
    names = [
        line[4:].split("\t")[0].strip() for line in text.split("\n") if line.startswith(("--- ", "+++ "))
    ]
    named = [name for name in names if name != NOWHERE]
    return re.sub(r"^[ab]/", "", named[-1]) if len(names) > 1 and named else ""


def apply_patch(path: str, text: str | None, patch: str) -> str | Refusal:
    """The text of the file after the change; None is a file that does not exist."""
    lines = patch.rstrip("\n").split("\n")
    read = list(edits(lines) if any(SEARCH.match(line) for line in lines) else hunks(lines))
    changes = [change for change in read if isinstance(change, Hunk)]
    if trouble := next((one for one in read if isinstance(one, Refusal)), None):
        return refuse_patch(path, trouble.reason)
    if text is None and any(change.old for change in changes):
        return Refusal(reason=UNSEEN.format(path))
    after = apply_hunks((text or "").split("\n"), changes)
    return after if isinstance(after, str) else refuse_patch(path, after.reason)


def refuse_patch(path: str, reason: str) -> Refusal:
    return Refusal(reason=f"'{path}': {reason}\nMend the change, or send the file whole.")


def apply_hunks(lines: list[str], changes: Sequence[Hunk]) -> str | Refusal:
    shift = 0
    for change in changes:
        place = hunk_position(lines, change, shift)
        if isinstance(place, Refusal):
            return place
        lines = [*lines[:place], *change.new, *lines[place + len(change.old) :]]
        shift += len(change.new) - len(change.old)
    return "\n".join(lines)


def hunk_position(lines: Sequence[str], change: Hunk, shift: int) -> int | Refusal:
    """Where the old lines stand: in one place only, or where the diff says."""
    size = len(change.old)
    if not size:
        known = lines == [""] or 0 < change.line + shift <= len(lines)
        return change.line + shift if known else Refusal(reason="nothing says where the new lines go")
    old = [line.rstrip() for line in change.old]
    starts = range(len(lines) - size + 1)
    places = [start for start in starts if [line.rstrip() for line in lines[start : start + size]] == old]
    if len(places) == 1 or change.line - 1 + shift in places:
        return places[0] if len(places) == 1 else change.line - 1 + shift
    quoted = "\n".join(change.old[:QUOTED_LINES])
    where = f"there {len(places)} times, quote more around them" if places else "not there"
    return Refusal(reason=f"these lines are {where}:\n{quoted}")


def edits(lines: Sequence[str]) -> Iterator[Hunk | Refusal]:
    """The SEARCH/REPLACE blocks."""
    waiting = iter(lines)
    for line in waiting:
        if not line.strip():
            continue
        if not SEARCH.match(line):
            yield Refusal(reason=f"'{line.strip()}' stands outside of the SEARCH/REPLACE blocks")
            return
        old, new = until(waiting, DIVIDER), until(waiting, REPLACE)
        if old is None or new is None:
            yield Refusal(reason="a SEARCH block has no line '=======' or no line '>>>>>>> REPLACE'")
            return
        yield Hunk(old=old, new=new)


def until(lines: Iterator[str], end: re.Pattern[str]) -> tuple[str, ...] | None:
    found: list[str] = []
    for line in lines:
        if end.match(line):
            return tuple(found)
        found.append(line)
    return None


def hunks(lines: Sequence[str]) -> Iterator[Hunk | Refusal]:
    """The hunks of a unified diff of one file."""
    if sum(line.startswith("+++ ") for line in lines) > 1:
        yield Refusal(reason="the diff changes several files; send one file a block")
        return
    if any(line.startswith(f"+++ {NOWHERE}") for line in lines):
        yield Refusal(reason="files cannot be deleted by a diff")
        return
    starts = [number for number, line in enumerate(lines) if HUNK.match(line)]
    if not starts:
        yield Refusal(reason="the diff has no line that begins with @@")
        return
    odd = [line for line in lines[: starts[0]] if line.strip() and not line.startswith(HEADERS)]
    if odd:
        yield Refusal(reason=f"'{odd[0].strip()}' stands before the first hunk of the diff")
        return
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield hunk(lines[start], [line for line in lines[start + 1 : end] if not line.startswith("\\")])


def hunk(head: str, body: Sequence[str]) -> Hunk | Refusal:
    odd = next((line for line in body if line and line[0] not in " +-"), None)
    if odd is not None:
        return Refusal(reason=f"the line '{odd}' of the diff begins with none of ' ', '+' and '-'")
    found = HUNK.match(head)
    return Hunk(
        old=tuple(line[1:] for line in body if not line.startswith("+")),
        new=tuple(line[1:] for line in body if not line.startswith("-")),
        line=int(found["line"] or 0) if found else 0,
    )


def split_diff(text: str) -> list[tuple[str, str]]:
    """The path and the text of each file that a diff changes; a path is empty where no header names it."""
    starts = [0]
    lines = text.split("\n")
    for number, line in enumerate(lines[1:], start=1):
        header = line.startswith("--- ") and any(map(is_new_name, lines[number + 1 : number + 2]))
        is_named = any(map(is_new_name, lines[starts[-1] : number]))
        if line.startswith("diff --git ") or (header and is_named):
            starts.append(number)
    if len(starts) == 1:
        return [("", text)]
    parts = [
        "\n".join(lines[start:end]) for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)
    ]
    return [(patched_path(part), part) for part in parts if part.strip()]


def is_new_name(line: str) -> bool:
    return line.startswith("+++ ")


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def replace_definition(path: str, text: str | None, name: str, code: str) -> str | Refusal:
    """The text of a Python file with one function, method or class: in place of the old one, or added to its class."""
    if text is None:
        return Refusal(reason=UNSEEN.format(path))
    wanted = name.rpartition(".")[2]
    new = python_tree(unindented(code))
    if new is None or [one.name for one in new.body if isinstance(one, Definition)] != [wanted]:
        return Refusal(
            reason=f"'{path}::{name}': the block must hold '{wanted}' whole and no other definition"
        )
    if len(new.body) > 1:
        return Refusal(
            reason=f"'{path}::{name}': only the definition can be replaced; send the rest as an edit"
        )
    tree = python_tree(text)
    known = definitions_in(tree)
    if name not in known:
        return add_definition(path, text, name, code, tree)
    old, lines = known[name], text.split("\n")
    start = min([old.lineno, *(one.lineno for one in old.decorator_list)]) - 1
    body = indented(code, old.col_offset)
    return "\n".join([*lines[:start], *body, *lines[old.end_lineno or old.lineno :]])


def add_definition(path: str, text: str, name: str, code: str, tree: ast.Module | None) -> str | Refusal:
    """Add a method to the end of its class, or a function or class to the end of the file, before what starts it."""
    owner = name.rpartition(".")[0]
    known = definitions_in(tree)
    home = known.get(owner) if owner else tree
    lines = text.rstrip("\n").split("\n")
    if isinstance(home, ast.ClassDef) and home.body[-1].lineno > home.lineno:
        end = home.end_lineno or home.lineno
        added = ["", *indented(code, home.body[-1].col_offset)]
        return "\n".join([*lines[:end], *added, *lines[end:], ""])
    if isinstance(home, ast.Module) and home.body:
        last = home.body[-1]
        starts = isinstance(last, ast.If) and "__name__" in ast.unparse(last.test)
        before, after = (lines[: last.lineno - 1], lines[last.lineno - 1 :]) if starts else (lines, [])
        added = [*"\n".join(before).rstrip().split("\n"), "", "", *indented(code, 0)]
        return "\n".join([*added, *(["", "", *after] if after else []), ""])
    names = ", ".join(known) or "none that can be read"
    return Refusal(reason=f"'{path}' has no '{owner or name}'; its definitions are {names}")


def indented(code: str, columns: int) -> list[str]:
    """The lines of the code, moved to the column."""
    margin = " " * columns
    return [margin + line if line.strip() else "" for line in unindented(code).rstrip("\n").split("\n")]


def unindented(code: str) -> str:
    return dedent(code).strip("\n") + "\n"


def python_tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def definitions_in(tree: ast.Module | ast.ClassDef | None, prefix: str = "") -> dict[str, Definition]:
    """Functions and classes by their dotted names; of two with one name the last counts."""
    found: dict[str, Definition] = {}
    for node in tree.body if tree else ():
        if isinstance(node, Definition):
            found[f"{prefix}{node.name}"] = node
        if isinstance(node, ast.ClassDef):
            found |= definitions_in(node, f"{prefix}{node.name}.")
    return found
