"""Python statements out of any reply: fenced or not, cut off, indented, at a prompt, with prose around. Pure."""

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence

from septet.common.values import Value
from septet.domain.plans import Refusal
from septet.domain.replies import PYTHON, Block, code_blocks

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
LANGUAGES = frozenset({*PYTHON, "pycon", "doctest", "plaintext", "code"})
CONTINUES = re.compile(r"(?:[ \t)\]}#]|(?:else|elif|except|finally)\b|$)")
PROMPT = re.compile(r"^\s*(?:>>>|\.\.\.) ?")
DEFINES = re.compile(r"^(?:def|class|import|from) ", re.MULTILINE)
CHARACTERS = str.maketrans(
    {"“": '"', "”": '"', "‘": "'", "’": "'", "\u00a0": " ", "\u200b": "", "\ufeff": "", "\t": "    "}  # noqa: RUF001  # what replies hold
)
LONGEST_MERGE = 40
"""Chunks: a text in triple quotes may hold so many lines that look like statements of their own."""


class Statement(Value):
    """One statement at the top level of a reply, with the comments above it, and which block it stands in."""

    node: ast.stmt
    text: str
    block: int


def statements_of(reply: str) -> tuple[list[Statement], list[str]]:
    """The statements of a reply's Python blocks in order, and the parts that are no Python.

    Where the blocks hold none, the reply as a whole may: its only fence can be the closing one.
    """
    blocks = forgiving_blocks(reply)
    found = statements_in([block for block in blocks if block.language in LANGUAGES] or blocks)
    return found if found[0] else statements_in([Block(language="", path="", text=reply.replace("```", ""))])


def statements_in(blocks: Sequence[Block]) -> tuple[list[Statement], list[str]]:
    statements: list[Statement] = []
    lost: list[str] = []
    for place, block in enumerate(blocks):
        found, dropped = parse_forgiving(block.text)
        statements += [
            Statement(node=node, text=text, block=place) for node, text in found if not is_prose(node)
        ]
        lost += dropped
    return statements, lost


def forgiving_blocks(reply: str) -> list[Block]:
    """The fenced blocks of a reply; one that never closes is one too.

    What never closes may have been cut off: a last assert could say anything, so it is left out.
    """
    blocks = code_blocks(reply)
    if isinstance(blocks, Refusal):
        whole, _, last = reply.rpartition("\n")
        rest = whole if last.lstrip().startswith("assert") else reply
        once = code_blocks(f"{rest}\n```")
        blocks = code_blocks(f"{rest}\n```\n```") if isinstance(once, Refusal) else once
    return [] if isinstance(blocks, Refusal) else blocks


def is_prose(node: ast.stmt) -> bool:
    """A line of words that happens to be Python, like `Sure` or `Example: usage`."""
    if isinstance(node, ast.AnnAssign):
        named = isinstance(node.annotation, ast.Name) and not node.annotation.id[:1].islower()
        return node.value is None and named
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Name | ast.Tuple | ast.Attribute)


def parse_forgiving(text: str) -> tuple[list[tuple[ast.stmt, str]], list[str]]:
    """Statements with their text. What is no Python is dropped piece by piece, never the whole block."""
    for source in readings(text):
        body = parse(source)
        if body is not None:
            return list(with_text(source, body)), []
    return pieces(textwrap.dedent(text.translate(CHARACTERS)))


def readings(text: str) -> Iterator[str]:
    yield text
    yield textwrap.dedent(text)
    yield textwrap.dedent(text.translate(CHARACTERS))
    if ">>>" in text:
        lines = [line for line in text.split("\n") if PROMPT.match(line)]
        yield "\n".join(PROMPT.sub("", line) for line in lines)


def parse(source: str) -> list[ast.stmt] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def pieces(source: str) -> tuple[list[tuple[ast.stmt, str]], list[str]]:
    """Statement by statement: a statement that does not parse alone may need the lines that follow."""
    chunks = chunks_of(source)
    found: list[tuple[ast.stmt, str]] = []
    lost: list[str] = []
    place = 0
    while place < len(chunks):
        for end in range(place + 1, min(len(chunks), place + LONGEST_MERGE) + 1):
            text = "\n".join(chunks[place:end])
            if (body := parse(text)) is not None:
                found += with_text(text, body)
                place = end
                break
        else:
            kept, rest = shorten(chunks[place])
            found += kept
            lost.append(rest)
            place += 1
    return found, lost


def chunks_of(source: str) -> list[str]:
    """Lines that begin a statement, each with the lines that can only continue it."""
    chunks: list[str] = []
    for line in source.split("\n"):
        if chunks and CONTINUES.match(line):
            chunks[-1] += "\n" + line
        else:
            chunks.append(line)
    return chunks


def shorten(chunk: str) -> tuple[list[tuple[ast.stmt, str]], str]:
    """A test that was cut off keeps its whole lines; any other definition that was cut off is lost."""
    lines = chunk.split("\n")
    if lines[0].startswith(("def test", "async def test", "class Test")):
        for end in range(len(lines) - 1, 1, -1):
            text = "\n".join(lines[:end])
            if (body := parse(text)) is not None:
                return list(with_text(text, body)), "\n".join(lines[end:])
    inner = textwrap.dedent("\n".join(lines[1:]))
    if DEFINES.search(inner) and not lines[0].startswith(("def ", "class ", "async ", "@")):
        found, lost = pieces(inner)
        return found, "\n".join([lines[0], *lost])
    return [], chunk


def with_text(source: str, body: Sequence[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    """Each statement with its lines and the comments above it; those that share a line are written anew."""
    lines = source.split("\n")
    done = 0
    for place, node in enumerate(body):
        first = first_line(node)
        last = node.end_lineno or first
        following = first_line(body[place + 1]) if place + 1 < len(body) else last + 1
        if first <= done or following <= last:
            done = last
            yield node, ast.unparse(node)
            continue
        comments = [line for line in lines[done : first - 1] if line.lstrip().startswith("#")]
        done = last
        yield node, "\n".join([*comments, *lines[first - 1 : last]])


def first_line(node: ast.stmt) -> int:
    marks = node.decorator_list if isinstance(node, Definition) else []
    return min([node.lineno, *(mark.lineno for mark in marks)])
