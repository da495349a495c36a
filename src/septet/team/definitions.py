"""What code defines, a line each: enough to use it without seeing it again. Pure."""

import ast
from collections.abc import Iterable, Iterator

LONGEST = 160


def definitions(sources: Iterable[str]) -> list[str]:
    """Functions, classes and constants of all sources, in order; the newest of a name counts."""
    found: dict[str, str] = {}
    for source in sources:
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for name, text in defined(tree):
            found.pop(name, None)
            found[name] = text[:LONGEST]
    return list(found.values())


def defined(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name, signature(node)
            case ast.ClassDef(name=name, body=body):
                methods = [
                    one.name for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
                ]
                yield name, f"class {name}: {', '.join(methods)}".rstrip(": ")
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, f"{name} = {ast.unparse(value)}"
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, ast.unparse(node)
            case _:
                continue


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    said = (ast.get_docstring(node) or "").split("\n")[0]
    return f"def {node.name}({ast.unparse(node.args)}){returns}" + (f": {said}" if said else "")
