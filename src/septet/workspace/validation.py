"""Checks that a Python file is complete: it must compile and have no placeholder for omitted code.

Looks at the syntax tree and the comments: strings like "TODO" or "Loading..." do not matter.
"""

import ast
import builtins
import io
import re
import symtable
import tokenize
import warnings
from collections.abc import Iterator
from contextlib import suppress

from septet.common.values import Value

BYTE_ORDER_MARK = "\ufeff"
"""Python takes it at the beginning of a file, and not in a text."""
WHAT = r"(?:code|file|functions?|methods?|class|classes|implementation|program|script|logic|imports?|tests?)"
STAYS = r"(?:here|as before|unchanged|stays?|remains?|omitted)"
DOTS = r"(?:\.\.\.|…)"
FORMS = (
    rf"^{DOTS}?\s*\(?(?:the )?rest of (?:\w+ ){{0,3}}{WHAT}\b",
    rf"^{DOTS}$",
    rf"{DOTS}\s*\(?(?:existing|previous|same|other|more|rest|remaining|unchanged|the rest)\b",
    rf"\b(?:existing|previous|same|other|original|remaining) (?:\w+ ){{0,2}}{WHAT} (?:\w+ ){{0,2}}{STAYS}\b",
    rf"^(?:your|add|insert|put|more|implement) (?:\w+ ){{0,3}}{WHAT} (?:goes )?here\b",
    r"\b(?:implementation|code) (?:goes here|omitted|left out|unchanged|stays the same)\b",
    rf"^(?:unchanged|as before|same as before)\s*{DOTS}?$",
)
ELISIONS = tuple(re.compile(form, re.IGNORECASE) for form in FORMS)
SCRIPTS = (".js", ".mjs", ".ts", ".jsx", ".tsx", ".php", ".sh", ".css", ".scss", ".html")
COMMENTED = (*SCRIPTS, ".c", ".h", ".cpp", ".hpp", ".cs", ".java", ".go", ".rs", ".kt", ".swift")
COMMENT_LINE = re.compile(r"^\s*(?://+|#+|/\*+|<!--)(?P<words>.*?)(?:\*/|-->)?\s*$")
ABSTRACT = {"Protocol", "ABC", "TypedDict", "Enum"}
PERMITTED = {"overload", "abstractmethod", "abstractproperty", "no_type_check"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


class FileFault(Value):
    """A fault of a file and its line."""

    line: int
    text: str


def file_fault(source: str, path: str = "main.py") -> FileFault | None:
    """The first fault that makes the file unusable; None if it is complete."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source.removeprefix(BYTE_ORDER_MARK), path)
            compile(tree, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        return FileFault(line=error.lineno or 1, text=f"{type(error).__name__}: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        return FileFault(line=1, text=f"{type(error).__name__}: {error}")
    return elision_of(source, path)


def elision_of(source: str, path: str = "main.py") -> FileFault | None:
    """The first placeholder for omitted code, also in a file that does not compile."""
    if path.endswith(".py"):
        faults = [*elided_comments(source), *elided_bodies(parse_or_fault(source))]
    else:
        faults = [*elided_lines(source)] if path.endswith(COMMENTED) else []
    return min(faults, key=lambda fault: fault.line) if faults else None


def fragment_fault(source: str, before: str) -> FileFault | None:
    """A piece of a file sent as the whole of it: it uses names that the file had before and has no more."""
    tree = parse_or_fault(source)
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)):
        return None
    had, (has, used) = global_names(before)[0], global_names(source)
    lost = sorted((used & had) - has - set(dir(builtins)))
    return FileFault(line=1, text=f"it uses {', '.join(lost)}, which is left out") if lost else None


def global_names(source: str) -> tuple[set[str], set[str]]:
    """The names that a module defines, and those that it uses as its own or a built-in one's."""
    try:
        waiting = [symtable.symtable(source, "module", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(), set()
    defined = {one.get_name() for one in waiting[0].get_symbols() if one.is_assigned() or one.is_imported()}
    used: set[str] = set()
    while waiting:
        table = waiting.pop()
        module = table.get_type() == "module"
        for one in table.get_symbols():
            if one.is_referenced() and (one.is_global() or (module and not one.is_assigned())):
                used.add(one.get_name())
            if one.is_declared_global() and one.is_assigned():
                defined.add(one.get_name())
        waiting += table.get_children()
    return defined, used


def parse_or_fault(source: str) -> ast.AST:
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(source.removeprefix(BYTE_ORDER_MARK))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


def fault_text(path: str, fault: FileFault) -> str:
    return f"{path}, line {fault.line}: {fault.text}"


def elided_comments(source: str) -> Iterator[FileFault]:
    """Placeholder comments like `# ... rest of the code`, also in a file that does not compile."""
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT and stands_for_code(token.string.lstrip("#")):
                yield FileFault(line=token.start[0], text=f"code was left out: '{token.string.strip()}'")


def elided_lines(source: str) -> Iterator[FileFault]:
    """Lines in other languages that are only a placeholder comment."""
    for number, line in enumerate(source.splitlines(), start=1):
        found = COMMENT_LINE.match(line)
        if found and stands_for_code(found["words"]):
            yield FileFault(line=number, text=f"code was left out: '{line.strip()}'")


def stands_for_code(comment: str) -> bool:
    words = comment.strip()
    return bool(words) and any(form.search(words) for form in ELISIONS)


def elided_bodies(tree: ast.AST) -> Iterator[FileFault]:
    """Bodies and statements that are only `...`, outside protocols, stubs and overloads."""
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, permitted = waiting.pop()
        if isinstance(node, ast.ClassDef):
            permitted = permitted or is_abstract(node) or is_exception(node)
        inside = permitted or (isinstance(node, Function) and is_stub(node))
        for child in ast.iter_child_nodes(node):
            if is_ellipsis(child) and not inside:
                yield FileFault(line=getattr(child, "lineno", 1), text="code was left out: a bare '...'")
            waiting.append((child, permitted))


def is_ellipsis(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is Ellipsis
    )


def is_abstract(node: ast.ClassDef) -> bool:
    return any(last_name(base) in ABSTRACT for base in [*node.bases, *(key.value for key in node.keywords)])


def is_exception(node: ast.ClassDef) -> bool:
    """Whether `...` is a valid body, as in `class Refused(Exception): ...`."""
    named = any(last_name(base).endswith(("Error", "Exception", "Warning")) for base in node.bases)
    return named and all(is_ellipsis(part) or is_text_node(part) for part in node.body)


def is_stub(node: Function) -> bool:
    return any(last_name(decorator) in PERMITTED for decorator in node.decorator_list)


def is_text_node(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def last_name(node: ast.AST) -> str:
    """`Protocol` out of `typing.Protocol[T]`."""
    if isinstance(node, ast.Subscript | ast.Call):
        return last_name(node.value if isinstance(node, ast.Subscript) else node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
