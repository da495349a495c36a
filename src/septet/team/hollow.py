"""The hollow program: what is left of a version when its functions keep their signatures and lose their bodies.

A check that passes on it too says nothing about the program.
"""

import ast
import re
from collections.abc import Sequence

KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""What a flat script keeps: without these its lines could not even be looked for."""

IDLE_COMMANDS = frozenset({"true", ":", "echo", "printf", "exit", "sleep"})


def hollow(source: str) -> str | None:
    """The same module with nothing in it that works; None where nothing can be taken away, or it is no Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    emptied = Emptied()
    tree = emptied.visit(tree)
    if not emptied.bodies:
        body = [one for one in tree.body if is_kept(one)]
        if len(body) == len(tree.body):
            return None
        tree.body = body
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


class Emptied(ast.NodeTransformer):
    """Empties functions, and counts those that held something. What runs on import stays as it is."""

    def __init__(self) -> None:
        self.bodies = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.empty(node)
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        self.empty(node)
        return node

    def empty(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        works = [one for one in node.body if not is_idle(one)]
        self.bodies += bool(works)
        node.body = [ast.Return(), ast.Expr(ast.Yield())] if is_generator(node) else [ast.Pass()]


def is_idle(statement: ast.stmt) -> bool:
    """`pass`, a docstring, `...`."""
    if isinstance(statement, ast.Pass):
        return True
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def is_generator(node: ast.AST) -> bool:
    """Whether it yields by itself: a function within that does is another one."""
    return any(
        isinstance(child, ast.Yield | ast.YieldFrom)
        or (
            not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and is_generator(child)
        )
        for child in ast.iter_child_nodes(node)
    )


def is_kept(statement: ast.stmt) -> bool:
    """Definitions and plain constants stay: taking them away would only break the imports of a test."""
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, KEPT) or is_idle(statement)


def is_trivial(command: str, files: Sequence[str]) -> bool:
    """Whether a command runs nothing of a program: shell words that only print or agree, Python code that names no
    file of it, or a program that is asked for nothing but its help.
    """
    words = command.split()
    if not words or words[0] in IDLE_COMMANDS:
        return True
    if words[-1] in ("--help", "-h", "--version"):
        return True
    inline = words[0].startswith("python") and "-c" in words
    return inline and not any(
        re.search(rf"\b{re.escape(one.rsplit('/', 1)[-1].partition('.')[0])}\b", command) for one in files
    )
