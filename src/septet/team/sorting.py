"""A small model's code sorted into a module and its tests, whatever blocks it came in and whatever it imports."""

import ast
import sys

from septet.domain.plans import Refusal
from septet.domain.replies import Block, CodeFile, code_blocks
from septet.domain.values import Value

KNOWN = {*sys.stdlib_module_names, "pytest", "__future__"}
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Pieces(Value):
    program: str
    tests: str


def sorted_files(reply: str, program: str, tests: str) -> tuple[CodeFile, ...] | Refusal:
    """The module and its tests out of a reply's blocks. The code itself is not changed, only its imports."""
    blocks = code_blocks(reply)
    if isinstance(blocks, Refusal):
        blocks = code_blocks(mended(reply))
    if isinstance(blocks, Refusal):
        return blocks
    module = program.rsplit("/", 1)[-1].removesuffix(".py")
    try:
        pieces = [split(block, module) for block in blocks]
    except (SyntaxError, ValueError, RecursionError) as error:
        return Refusal(reason=f"a block is not Python ({error}); send code only inside of ```python blocks")
    code = "\n\n".join(piece.program for piece in pieces if piece.program)
    checks = "\n\n".join(piece.tests for piece in pieces if piece.tests)
    if not code or not checks:
        lacking = "the module" if not code else "its tests"
        return Refusal(
            reason=f"{lacking} did not come; send two ```python blocks: the module, then its tests"
        )
    return (CodeFile(path=program, text=code + "\n"), CodeFile(path=tests, text=checks + "\n"))


def split(block: Block, module: str) -> Pieces:
    """What of a block tests the module, and what is the module. Raises SyntaxError for what is no Python."""
    lines = block.text.splitlines()
    body = ast.parse(block.text).body
    tests = [node for node in body if is_test(node)]
    others = [node for node in body if isinstance(node, Definition) and not is_test(node)]
    if not tests:
        return Pieces(
            program=joined(lines, [node for node in body if not imports_of(node, module)]), tests=""
        )
    imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    head = "\n".join([*importing(imports, module, lines), ""])
    if not others:
        rest = [node for node in body if node not in imports]
        return Pieces(program="", tests=f"{head}\n{joined(lines, rest)}")
    program = [node for node in body if node not in tests and not imports_of(node, module)]
    return Pieces(program=joined(lines, program), tests=f"{head}\n{joined(lines, tests)}")


def mended(reply: str) -> str:
    """A reply that was cut off inside of a test: the test ends with its last whole line.

    Small models do not stop writing asserts. Anything else that is cut off stays so, and is refused.
    """
    whole, _, _ = reply.rpartition("\n")
    code = whole[whole.rfind("```") :].partition("\n")[2]
    try:
        last = ast.parse(code).body[-1]
    except (SyntaxError, ValueError, IndexError):
        return reply
    return f"{whole}\n```" if is_test(last) else reply


def is_test(node: ast.stmt) -> bool:
    return isinstance(node, Definition) and node.name.lower().startswith("test")


def imports_of(node: ast.stmt, module: str) -> bool:
    """A module that imports itself, or a test library."""
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    if isinstance(node, ast.ImportFrom):
        names = [node.module or ""]
    return any(name.partition(".")[0] in (module, "pytest") for name in names)


def importing(imports: list[ast.Import | ast.ImportFrom], module: str, lines: list[str]) -> list[str]:
    """The imports of a test file: what is neither known nor there can only be meant as the module."""
    kept = [joined(lines, [node]) for node in imports if root_of(node) in KNOWN]
    own = [node for node in imports if isinstance(node, ast.ImportFrom) and root_of(node) not in KNOWN]
    names = sorted({alias.name for node in own for alias in node.names} - {"*"})
    return [
        *kept,
        f"from {module} import *",
        *([f"from {module} import {', '.join(names)}"] if names else []),
    ]


def root_of(node: ast.Import | ast.ImportFrom) -> str:
    name = node.names[0].name if isinstance(node, ast.Import) else node.module or ""
    return name.partition(".")[0]


def joined(lines: list[str], nodes: list[ast.stmt]) -> str:
    """The source of statements; definitions stand apart."""
    parts: list[str] = []
    for node in nodes:
        marks = node.decorator_list if isinstance(node, Definition) else []
        first = min([node.lineno, *(mark.lineno for mark in marks)])
        gap = "\n\n" if isinstance(node, Definition) and parts else ""
        parts.append(gap + "\n".join(lines[first - 1 : node.end_lineno]))
    return "\n".join(parts)
