"""Which modules of others a program needs: neither the standard library's nor its own."""

import ast
import sys
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath


def foreign_imports(sources: Mapping[str, str], present: Iterable[str] = ()) -> tuple[str, ...]:
    """Top-level names that the sources (path → text) import from elsewhere, sorted.

    `present` are names that are importable already. A source that is no Python is left out: running it will
    say so better.
    """
    own = {part for path in sources for part in _names(path)}
    known = own | set(present) | sys.stdlib_module_names | {"__main__"}
    return tuple(sorted({name for text in sources.values() for name in _imported(text)} - known))


def _names(path: str) -> Iterable[str]:
    """Folders on the way and the file itself can all be imported, from one working folder or another."""
    parts = PurePosixPath(path).with_suffix("").parts
    return (part for part in parts if part.isidentifier())


def _imported(text: str) -> Iterable[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
