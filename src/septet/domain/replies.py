"""Files out of a model's reply: fenced blocks with file names, or a clear reason why not. Nothing is left out."""

import ast
import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from septet.domain.block_names import block_name, is_headed_patch, language_of
from septet.domain.counts import counted
from septet.domain.patches import is_patch, patched
from septet.domain.plans import Refusal
from septet.domain.values import Value

OPENING = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`]*?)[ \t]*$")
INNER_INDENT = 3
PYTHON = {"python", "py", "python3", ""}
NOT_FILES = frozenset(
    """bash sh shell zsh fish console terminal shell-session shellsession powershell cmd bat text txt plaintext
    plain output log pycon python-repl pytb traceback tree mermaid""".split()  # noqa: SIM905  # a list reads worse
)
"""Languages of blocks that tell the reader something, unless they name a file."""
MOST_CLOSINGS = 8


class Block(Value):
    """A fenced block as it stands in a reply: its language, the file it names (or none) and its text.

    `unclear` are words that name a file, but not which.
    """

    language: str
    path: str
    text: str
    unclear: str = ""


class CodeFile(Value):
    path: str
    text: str


def code_files(
    reply: str, only: str = "", before: Mapping[str, str] | None = None
) -> tuple[CodeFile, ...] | Refusal:
    """The files of a reply, whole. `only` names the file that a single unnamed block stands for.

    `before` are the files that there are, by path: a diff or a SEARCH/REPLACE block changes one of them.
    """
    blocks = code_blocks(reply)
    if isinstance(blocks, Refusal):
        return blocks
    if unclear := next((block.unclear for block in blocks if block.unclear), ""):
        form = 'start the block with ```python NAME.py, or ```python file="MY NAME.py" if it has spaces'
        return Refusal(reason=f"'{unclear}' does not say which file is meant; {form}")
    named = [block for block in blocks if block.path]
    unnamed = unnamed_code(blocks)
    if not named and len(unnamed) == 1 and only and unnamed[0].language in PYTHON:
        named, unnamed = [replace(unnamed[0], path=only)], []
    if unnamed:
        return without_name(unnamed)
    if not named:
        return Refusal(reason="no code block; put each file in a block that starts with ```python NAME.py")
    return whole_files(named, before or {})


def unnamed_code(blocks: Sequence[Block]) -> list[Block]:
    """Blocks that must be files and do not say which; a bare one beside others may be what a program prints."""
    nameless = [
        block
        for block in blocks
        if not block.path and (block.language not in NOT_FILES or holds_blocks(block.text))
    ]
    code = [one for one in nameless if one.language or is_program(one.text) or holds_blocks(one.text)]
    return code if code or any(block.path for block in blocks) else nameless


def holds_blocks(text: str) -> bool:
    return any(OPENING.match(line) for line in text.splitlines())


def without_name(blocks: Sequence[Block]) -> Refusal:
    first = next((line.strip() for line in blocks[0].text.splitlines() if line.strip()), "")
    if any(is_change(block) for block in blocks):
        return Refusal(reason=f"a diff names no file ('{first}'); start each with ```diff NAME.py")
    count = counted(len(blocks), "code block")
    return Refusal(
        reason=f"{count} without a file name ('{first}'); start each with ```python NAME.py, or leave it out"
    )


def whole_files(blocks: Sequence[Block], before: Mapping[str, str]) -> tuple[CodeFile, ...] | Refusal:
    """The text of each file after the reply: sent once and whole, or changed, perhaps several times."""
    texts: dict[str, str] = {}
    changed: set[str] = set()
    for block in blocks:
        path, change = block.path, is_change(block)
        if is_outside(path):
            return Refusal(reason=f"'{path}' is not a path inside the workspace")
        if path in texts and not (change and path in changed):
            return Refusal(reason=f"'{path}' comes twice; send each file once, whole")
        text = patched(path, texts.get(path, before.get(path)), block.text) if change else block.text
        if isinstance(text, Refusal):
            return text
        if not text.strip() and not path.endswith("__init__.py"):
            return Refusal(reason=f"'{path}' is empty; send each file whole")
        texts[path] = text
        changed |= {path} if change else set()
    return tuple(CodeFile(path=path, text=text) for path, text in texts.items())


def is_change(block: Block) -> bool:
    if block.path.endswith((".diff", ".patch")):
        return False
    return block.language == "diff" or is_patch(block.text)


def is_outside(path: str) -> bool:
    parts = path.split("/")
    return path.startswith(("/", "~")) or ".." in parts or "" in parts or "\\" in path or ":" in path


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
        ends = closings(lines, number, opening)
        if not ends:
            return Refusal(
                reason=f"the code block that starts with '{lines[number].strip()}' is never closed"
            )
        body = [unindented(line, opening["indent"]) for line in lines[number + 1 : ends[-1]]]
        sizes = [end - number - 1 for end in ends]
        code = sizes if "py" in opening["info"].lower() or not opening["info"] else []
        size = next((size for size in code if parsed("\n".join(body[:size])) is not None), sizes[0])
        above = next((line for line in reversed(lines[:number]) if line.strip()), "")
        blocks.append(block(opening["info"], body[:size], above))
        number += size + 2
    return blocks


def unindented(line: str, indent: str) -> str:
    """The line without the indentation of its fence, as far as it has that."""
    if line.startswith(indent):
        return line[len(indent) :]
    return line[min(len(indent), len(line) - len(line.lstrip(" "))) :]


def closings(lines: list[str], start: int, opening: re.Match[str]) -> list[int]:
    """Lines that may close the fence opened at `start`: the first does, unless it stands inside a string."""
    fence, deepest = opening["fence"], len(opening["indent"]) + INNER_INDENT
    depth = 0
    found: list[int] = []
    for number in range(start + 1, len(lines)):
        inner = OPENING.match(lines[number])
        if inner is None or inner["fence"][0] != fence[0] or len(inner["fence"]) < len(fence):
            continue
        if len(inner["indent"]) > deepest:
            continue
        if inner["info"]:
            depth += 1
        elif depth > 0:
            depth -= 1
        elif len(found) < MOST_CLOSINGS:
            found.append(number)
    return found


def parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_program(source: str) -> bool:
    """Python that does more than to name values, which is what programs print."""
    tree = parsed(source)
    return tree is not None and any(not isinstance(node, ast.Expr) for node in tree.body)


def block(info: str, body: list[str], above: str) -> Block:
    name = block_name(info, body, above)
    lines = body[1:] if body and is_headed_patch(body) else body
    text = "\n".join(lines).rstrip() + "\n"
    return Block(language=language_of(info), path=name.path, text=text, unclear=name.unclear)
