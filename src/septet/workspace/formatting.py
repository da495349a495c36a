"""Formatting by ruff, kept only where it changes nothing but the looks."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

from anyio import to_thread

PATIENCE = 20.0
SETTINGS = ("--isolated", "--stdin-filename")


async def format_python(source: str, path: str) -> str:
    """The source with sorted imports and ruff's layout; as it was where ruff is away or would alter it."""
    return await to_thread.run_sync(format_source, source, path)


def format_source(source: str, path: str) -> str:
    command = ruff()
    if command is None or not path.endswith(".py"):
        return source
    sort = [command, "check", "--select", "I", "--fix", "--quiet", *SETTINGS, path, "-"]
    looks = [command, "format", "--quiet", *SETTINGS, path, "-"]
    return faithful(source, pipe_through(looks, pipe_through(sort, source)))


def ruff() -> str | None:
    """The command, beside this interpreter or on PATH."""
    beside = Path(sys.executable).with_name("ruff")
    return str(beside) if beside.exists() else shutil.which("ruff")


def pipe_through(command: list[str], source: str) -> str:
    """What the command makes of the source; the source itself where it fails."""
    try:
        run = subprocess.run(
            command, input=source.encode(), capture_output=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return source
    return run.stdout.decode() if run.returncode == 0 and run.stdout else source


def faithful(before: str, after: str) -> str:
    """The new text only where its syntax tree is the old one, imports aside."""
    try:
        return after if shape(before) == shape(after) else before
    except (SyntaxError, ValueError, RecursionError):
        return before


def shape(source: str) -> tuple[list[str], list[str]]:
    """Every imported name, sorted, and everything else in order."""
    tree = ast.parse(source)
    others = [ast.dump(node) for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return sorted(set(imported_names(tree))), others


def imported_names(tree: ast.AST) -> list[str]:
    """Every imported name on its own, so that joining and splitting import lines makes no difference."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [f"{alias.name} as {alias.asname}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.level}{node.module}.{alias.name} as {alias.asname}" for alias in node.names]
    return found
