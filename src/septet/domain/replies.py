"""Code out of a model's reply: fenced blocks with file names, or a clear reason why not."""

import ast
import re
from collections.abc import Iterator

from septet.domain.counts import counted
from septet.domain.plans import Refusal
from septet.domain.values import Value

OPENING = re.compile(r"^ {0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`]*?)[ \t]*$")
CODE_LANGUAGES = {"python", "py", "python3", ""}
SAID_BEFORE = re.compile(
    r"^[\s#*>`-]*(?:file(?:name)?\s*:\s*)?[`*\"]*(?P<path>[\w./-]+\.\w+)[`*\"]*\s*:?[\s*`]*$", re.I
)
SAID_INSIDE = re.compile(r"^#\s*(?:file(?:name)?\s*:\s*)(?P<path>[\w./-]+\.\w+)\s*$", re.I)
NAMED = re.compile(r"""(?:file|filename|title|path|name)\s*=\s*["']?(?P<path>[^"'\s}]+)""", re.I)
PATH = re.compile(r"^(?:\w[\w.-]*/)*[\w.-]+\.\w+$")
MOST_CLOSINGS = 8


class Block(Value):
    """A fenced block as it stands in a reply: its language, the file it names (or none) and its text."""

    language: str
    path: str
    text: str


class CodeFile(Value):
    path: str
    text: str


def code_files(reply: str, only: str = "") -> tuple[CodeFile, ...] | Refusal:
    """The files of a reply. `only` names the file that a single unnamed block stands for."""
    blocks = code_blocks(reply)
    if isinstance(blocks, Refusal):
        return blocks
    named = [block for block in blocks if block.path]
    unnamed = [block for block in blocks if not block.path and block.language in CODE_LANGUAGES]
    if named:
        return checked([CodeFile(path=block.path, text=block.text) for block in named])
    if len(unnamed) == 1 and only:
        return checked([CodeFile(path=only, text=unnamed[0].text)])
    if unnamed:
        return Refusal(
            reason=f"{counted(len(unnamed), 'code block')} without a file name; start each with ```python NAME.py"
        )
    if blocks:
        return Refusal(reason=f"the code block is {blocks[0].language}, not python")
    return Refusal(reason="no code block; put each file in a block that starts with ```python NAME.py")


def checked(files: list[CodeFile]) -> tuple[CodeFile, ...] | Refusal:
    """Paths stay inside the workspace and appear once; no file is empty by accident."""
    seen: set[str] = set()
    for file in files:
        parts = file.path.split("/")
        outside = file.path.startswith(("/", "~")) or ".." in parts or "" in parts or "\\" in file.path
        if outside or ":" in file.path:
            return Refusal(reason=f"'{file.path}' is not a path inside the workspace")
        if not file.text.strip() and parts[-1] != "__init__.py":
            return Refusal(reason=f"'{file.path}' is empty; send each file whole")
        if file.path in seen:
            return Refusal(reason=f"'{file.path}' comes twice; send each file once, whole")
        seen.add(file.path)
    return tuple(files)


def code_blocks(reply: str) -> list[Block] | Refusal:
    """All fenced blocks, by CommonMark's rules; a fence with an info string inside a block nests."""
    lines = reply.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    blocks: list[Block] = []
    number = 0
    while number < len(lines):
        opening = OPENING.match(lines[number])
        if opening is None:
            number += 1
            continue
        ends = closings(lines, number, opening["fence"])
        if not ends:
            return Refusal(
                reason=f"the code block that starts with '{lines[number].strip()}' is never closed"
            )
        code = ends if "py" in opening["info"].lower() or not opening["info"] else []
        end = next((end for end in code if is_python(lines[number + 1 : end])), ends[0])
        blocks.append(block(opening["info"], lines[number + 1 : end], lines[:number]))
        number = end + 1
    return blocks


def closings(lines: list[str], start: int, fence: str) -> list[int]:
    """Lines that may close the fence opened at `start`: the first does, unless it stands inside a string."""
    depth = 0
    found: list[int] = []
    for number in range(start + 1, len(lines)):
        inner = OPENING.match(lines[number])
        if inner is None or inner["fence"][0] != fence[0] or len(inner["fence"]) < len(fence):
            continue
        if inner["info"]:
            depth += 1
        elif depth > 0:
            depth -= 1
        elif len(found) < MOST_CLOSINGS:
            found.append(number)
    return found


def is_python(lines: list[str]) -> bool:
    try:
        ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def block(info: str, body: list[str], before: list[str]) -> Block:
    words = info.replace(":", " ").replace("{", " ").replace("}", " ").split()
    language = words[0].lower() if words and not PATH.match(words[0]) else ""
    path = next(paths(info, words, body, before), "")
    return Block(language=language.lstrip("."), path=path, text="\n".join(body).rstrip() + "\n")


def paths(info: str, words: list[str], body: list[str], before: list[str]) -> Iterator[str]:
    """Where a block may name its file, the surest place first."""
    if found := NAMED.search(info):
        yield found["path"]
    yield from (word for word in words if PATH.match(word) or word.startswith(("/", "../")))
    if body and (found := SAID_INSIDE.match(body[0])):
        yield found["path"]
    said = next((line for line in reversed(before) if line.strip()), "")
    if found := SAID_BEFORE.match(said):
        yield found["path"]
