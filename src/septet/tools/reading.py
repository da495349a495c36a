"""Tools that read the workspace: list files, search them, outline their definitions, read their lines.

What git ignores and what looks like a secret is not among the texts of a tool context, so no tool finds it.
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from shutil import which
from typing import Annotated

from msgspec import Meta

from septet.common.text import pluralize
from septet.domain.plans import Refusal
from septet.tools.registry import Tool, ToolContext, ToolResult, tool_of_function
from septet.tools.syntax_outline import syntax_definitions
from septet.workspace.files import in_thread

MOST_LISTED = 200
MOST_MATCHES = 100
MOST_OUTLINED = 150
LONGEST_LINE = 240
MOST_SHOWN = 7_500
"""Characters of lines in one answer, so that it fits into the bound of every answer."""
PATIENCE = 20.0
NO_MATCH = "no match"
READERS = ("planner", "coder", "reviewer")

FolderPath = Annotated[str, Meta(description="A folder inside the workspace; empty for all of it.")]
FilePath = Annotated[str, Meta(description="A path inside the workspace, e.g. src/main.py")]


def list_files(
    context: ToolContext,
    folder: FolderPath = "",
    pattern: Annotated[str, Meta(description="Only paths like this, e.g. *.py")] = "",
) -> ToolResult | Refusal:
    """List the files of the workspace; a folder with many files is told by how many it holds."""
    paths = [path for path in paths_in(context, folder) if not pattern or matches_glob(path, pattern)]
    if not paths:
        return Refusal(reason=f"no file in '{folder or '.'}'" + (f" is like '{pattern}'" if pattern else ""))
    inside = folder_path(context, folder)
    shown = paths if len(paths) <= MOST_LISTED else grouped(paths, inside)[:MOST_LISTED]
    summary = f"list {folder or '.'}{f' {pattern}' if pattern else ''} → {pluralize(len(paths), 'file')}"
    return ToolResult(text="\n".join(shown), summary=summary)


def paths_in(context: ToolContext, folder: str) -> list[str]:
    """The paths below a folder, or the path itself if it is a file."""
    inside = folder_path(context, folder)
    return sorted(path for path in context.texts if not inside or f"{path}/".startswith(f"{inside}/"))


def file_path(context: ToolContext, path: str) -> str:
    """The path as the workspace knows it: models write `./` before it, or the whole path that a program printed."""
    return context.inside(path.strip().removeprefix("./"))


def folder_path(context: ToolContext, folder: str) -> str:
    """The folder without a leading `./` and trailing slashes; empty for the whole workspace."""
    path = file_path(context, folder).rstrip("/")
    return "" if path == "." else path


def matches_glob(path: str, pattern: str) -> bool:
    return fnmatch(path, pattern) or fnmatch(path.rsplit("/", 1)[-1], pattern)


def grouped(paths: Iterable[str], folder: str) -> list[str]:
    """The files of the folder, and each subfolder with its number of files."""
    prefix = f"{folder}/" if folder else ""
    firsts = Counter(
        prefix + rest.partition("/")[0] + ("/" if "/" in rest else "")
        for rest in (path.removeprefix(prefix) for path in paths)
    )
    return [
        f"{name} ({pluralize(count, 'file')})" if name.endswith("/") else name
        for name, count in firsts.items()
    ]


async def search(
    context: ToolContext,
    pattern: Annotated[str, Meta(description="A regular expression, matched line by line.")],
    folder: FolderPath = "",
    files: Annotated[str, Meta(description="Only in paths like this, e.g. *.py")] = "",
    around: Annotated[int, Meta(description="Lines to show before and after each match.", ge=0, le=20)] = 0,
) -> ToolResult | Refusal:
    """Search text files, or the one that `folder` names. A match comes as path:line: text; `around` shows its
    neighbours with their numbers, so that it need not be read again.
    """
    paths = {path for path in paths_in(context, folder) if not files or matches_glob(path, files)}
    where = folder_path(context, folder)
    found = await in_thread(lambda: matching_lines(context.root, pattern, where, sorted(paths)))
    if isinstance(found, Refusal):
        return found
    matches = list(readable_matches(context, found, paths))
    summary = f"search {pattern[:60]} → {pluralize(len(matches), 'line')}"
    more = f"\n… more than {MOST_MATCHES} matches: search for less" if len(matches) > MOST_MATCHES else ""
    told = neighbours if around else matching_line
    lines = told(context, matches[:MOST_MATCHES], around)
    return ToolResult(text="\n".join(lines) + more or NO_MATCH, summary=summary)


def readable_matches(
    context: ToolContext, found: Iterable[tuple[str, int]], paths: set[str]
) -> Iterator[tuple[str, int]]:
    """The matches in files that may be read, one more than an answer shows."""
    count = 0
    for path, number in found:
        text = context.texts.get(path) if path in paths and count <= MOST_MATCHES else None
        if text is not None and number <= text.count("\n") + 1:
            count += 1
            yield path, number


def matching_line(context: ToolContext, matches: Iterable[tuple[str, int]], _around: int) -> Iterator[str]:
    for path, number in matches:
        yield f"{path}:{number}: {context.texts[path].split(chr(10))[number - 1].strip()[:LONGEST_LINE]}"


def neighbours(context: ToolContext, matches: Sequence[tuple[str, int]], around: int) -> Iterator[str]:
    """For each file its name, and the lines near its matches with their numbers; `…` stands for a gap."""
    for path in dict.fromkeys(path for path, _ in matches):
        lines = context.texts[path].removesuffix("\n").split("\n")
        hits = [number for one, number in matches if one == path]
        shown = sorted({near for hit in hits for near in range(hit - around, hit + around + 1)})
        yield f"{path}:"
        before = 0
        for number in shown:
            if 1 <= number <= len(lines):
                if before and number > before + 1:
                    yield "…"
                before = number
                yield f"{number}\t{lines[number - 1][:LONGEST_LINE]}"


SEARCHER = """
import re, sys
pattern, *paths = sys.stdin.buffer.read().decode("utf-8", "surrogateescape").split("\\0")
wanted = re.compile(pattern)
for path in paths:
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if wanted.search(line.rstrip("\\n")):
                    print(path, number, sep="\\0", end=":\\n")
    except (OSError, UnicodeDecodeError):
        pass
"""
"""A pattern may take forever, so it is matched in a process that can be killed."""


def matching_lines(
    root: Path, pattern: str, folder: str, paths: list[str]
) -> list[tuple[str, int]] | Refusal:
    """Path and line of each match: by ripgrep if it is installed and accepts the pattern, else by Python."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError) as error:
        return Refusal(reason=f"'{pattern[:80]}' is no regular expression ({error}); escape its signs")
    if not root.is_dir() or not paths:
        return []
    ripgrep = which("rg")
    options = ("--no-config", "--no-messages", "--hidden", "-nH", "--null", "--no-heading", "--color=never")
    commands = [[ripgrep, *options, "--sort=path", "-e", pattern, "--", f"./{folder}"]] if ripgrep else []
    given = "\0".join([pattern, *paths]).encode(errors="surrogateescape")
    for command in [*commands, [sys.executable, "-I", "-c", SEARCHER]]:
        try:
            ran = subprocess.run(
                command, cwd=root, input=given, capture_output=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            return Refusal(reason=f"'{pattern[:80]}' takes too long; search for something simpler")
        if ran.returncode in (0, 1) and (ran.returncode == 0 or command[0] == ripgrep):
            return list(read_matches(ran.stdout.decode(errors="replace")))
    return Refusal(reason=f"'{pattern[:80]}' cannot be searched for")


def read_matches(output: str) -> Iterator[tuple[str, int]]:
    for line in output.split("\n"):
        path, nul, rest = line.partition("\0")
        number = rest.partition(":")[0]
        if nul and number.isdigit():
            yield path.removeprefix("./"), int(number)


def outline(context: ToolContext, path: FolderPath = "") -> ToolResult | Refusal:
    """The definitions of a file with their lines, or those of every file in a folder."""
    paths = paths_in(context, path)
    if not paths:
        return unreadable_file(context, path)
    whole = len(paths) == 1
    lines: list[str] = []
    for one in paths:
        if len(lines) > MOST_OUTLINED:
            lines.append("… and more: outline a folder or a file of it")
            break
        found = list(outline_lines(one, context.texts.get(one) or "", nested=whole))
        lines += [one, *(f"  {line}" for line in found)] if found else []
    return ToolResult(text="\n".join(lines) or "no definitions", summary=f"outline {path or '.'}")


def outline_lines(path: str, text: str, *, nested: bool) -> Iterator[str]:
    """Line, kind and name of each definition in a file; with `nested`, methods too."""
    if path.endswith((".py", ".pyi")):
        try:
            yield from python_definitions(ast.parse(text).body, nested, 0)
            return
        except (SyntaxError, ValueError, RecursionError):
            pass
    elif (found := syntax_definitions(path, text, nested=nested)) is not None:
        yield from (line[:LONGEST_LINE] for line in found)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if DEFINITION.match(line) and (nested or not line[:1].isspace()):
            yield f"{number} {line.rstrip().rstrip('{').rstrip()[:LONGEST_LINE]}"


DEFINITION = re.compile(
    r"^\s*(?:export\s+|default\s+|public\s+|private\s+|protected\s+|static\s+|abstract\s+|final\s+|async\s+|pub(?:\([^)]*\))?\s+|unsafe\s+)*"
    r"(?:(?:def|class|function\*?|func|fn|struct|enum|trait|interface|impl|type|module|namespace|protocol|object|record)\b\s*[\w(<*]"
    r"|(?:const|let|var)\s+\w+\s*=\s*(?:async\s*)?(?:\([^)]*\)|\w+)\s*=>"
    r"|\#{1,6}\s+\S)"
)
"""How definitions begin in most languages; a heading in Markdown counts as one."""


def python_definitions(body: list[ast.stmt], nested: bool, depth: int) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            head = f"{kind} {node.name}({ast.unparse(node.args)}){returns}"
            yield f"{node.lineno} {'  ' * depth}{head}"[:LONGEST_LINE]
        elif isinstance(node, ast.ClassDef):
            bases = ", ".join(map(ast.unparse, node.bases))
            yield f"{node.lineno} {'  ' * depth}class {node.name}{f'({bases})' if bases else ''}"[
                :LONGEST_LINE
            ]
            if nested or depth == 0:
                yield from python_definitions(node.body, nested, depth + 1)


def read(
    context: ToolContext,
    path: FilePath,
    start: Annotated[int, Meta(description="The first line, counted from 1.", ge=1)] = 1,
    end: Annotated[int, Meta(description="The last line; 0 for as many as fit.", ge=0)] = 0,
) -> ToolResult | Refusal:
    """Read a text file, or some of its lines. Each line comes with its number and a tab before it."""
    path = file_path(context, path)
    text = context.texts.get(path)
    if text is None:
        return unreadable_file(context, path)
    lines = text.removesuffix("\n").split("\n") if text else []
    if lines and start > len(lines):
        return Refusal(reason=f"'{path}' has {pluralize(len(lines), 'line')}")
    shown = list(numbered(lines, start, end or len(lines)))
    last = start + len(shown) - 1
    is_cut = last < (min(end, len(lines)) if end else len(lines))
    more = f"; go on with start={last + 1}" if is_cut else ""
    rest = f"\n({path} has {len(lines)} lines{more})" if last < len(lines) else ""
    whole = start == 1 and last >= len(lines)
    where = path if whole else f"{start}–{last} of {path}"
    return ToolResult(
        text="\n".join(shown) + rest if lines else f"({path} is empty)",
        summary=f"read {where}",
        shown=(path,) if whole else (),
    )


def numbered(lines: list[str], start: int, end: int) -> Iterator[str]:
    """As many lines as fit into an answer; a line that is too long is cut."""
    room = MOST_SHOWN
    for number, line in enumerate(lines[start - 1 : end], start=start):
        told = f"{number}\t{line[:MOST_SHOWN]}"
        room -= len(told.encode()) + 1
        if room < 0 and number > start:
            return
        yield told


def unreadable_file(context: ToolContext, path: str) -> Refusal:
    """Why a file cannot be read, with names that are near."""
    if context.exists(path):
        return Refusal(reason=closed_reason(context, path))
    name = path.rsplit("/", 1)[-1]
    near = [one for one in context.texts if name and one.endswith(f"/{name}")][:5]
    hint = f"; did you mean {' or '.join(near)}?" if near else "; see list_files"
    return Refusal(reason=f"there is no '{path}'{hint}")


def closed_reason(context: ToolContext, path: str) -> str:
    """Why a file may not be read and, if it is taken for a secret, how the person says that it is none."""
    if why := context.secret_reason(path):
        remedy = f"if it is none, the person can say so: septet facts 'remember: not secret: {path}'"
        return f"'{path}' may not be read: it looks like a secret ({why}); {remedy}"
    return f"'{path}' may not be read: it is no text, too large or ignored"


def reading_tools() -> list[Tool]:
    return [tool_of_function(one, roles=READERS) for one in (list_files, search, outline, read)]
