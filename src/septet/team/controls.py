"""Controls: mutation testing of checks. A check that is worth something fails on a changed program.

The hollow program keeps its signatures, with empty functions. Mutants change every function at once: what it
returns to a test, its operators, its constants. A check that passes on the hollow program, or on every mutant,
proves nothing. Changing all functions at once takes a few runs, however large the program is, and code that no test
reaches makes no difference.
"""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from septet.domain.files import is_test
from septet.domain.pytest_report import TestReport
from septet.domain.runs import ControlName
from septet.team.run_modes import imported_modules

KEPT_STATEMENTS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""Statements that a script without functions keeps, so that it can still be imported."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def parse_module(source: str) -> ast.Module | None:
    try:
        return ast.parse(source.removeprefix("\ufeff"))  # a byte order mark
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def unparse(tree: ast.Module) -> str:
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def empty_functions(source: str) -> str | None:
    """Empty all functions, or remove a script's statements; None if that changes nothing, or it is not Python."""
    tree = parse_module(source)
    if tree is None:
        return None
    bodies = EmptyBodies()
    tree = bodies.visit(tree)
    if not bodies.count:
        body = [one for one in tree.body if is_kept(one)]
        if len(body) == len(tree.body):
            return None
        tree.body = body
    return unparse(tree)


class EmptyBodies(ast.NodeTransformer):
    """Empties functions, and counts those that were not empty before. Module-level code is not changed."""

    def __init__(self) -> None:
        self.count = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.empty(node)
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        self.empty(node)
        return node

    def empty(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        works = [one for one in node.body if not is_idle(one)]
        self.count += bool(works)
        node.body = [ast.Return(), ast.Expr(ast.Yield())] if is_generator(node) else [ast.Pass()]


def is_idle(statement: ast.stmt) -> bool:
    """Whether the statement is `pass`, a docstring or `...`."""
    if isinstance(statement, ast.Pass):
        return True
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def is_generator(node: ast.AST) -> bool:
    """Whether the function itself yields; nested functions do not count."""
    return any(
        isinstance(child, ast.Yield | ast.YieldFrom)
        or (not isinstance(child, (*FUNCTIONS, ast.Lambda)) and is_generator(child))
        for child in ast.iter_child_nodes(node)
    )


def is_kept(statement: ast.stmt) -> bool:
    """Whether to keep the statement: without definitions and constants, only the imports of a test would fail."""
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, KEPT_STATEMENTS) or is_idle(statement)


def mutate(source: str, mutation: ast.NodeTransformer) -> str | None:
    """Apply the mutation to each function, or to the whole module if it has none; None if nothing changes."""
    tree = parse_module(source)
    if tree is None:
        return None
    before = ast.dump(tree)
    for node in list(outer_functions(tree)) or [tree]:
        node.body = [mutation.visit(one) for one in node.body]
    return unparse(tree) if ast.dump(tree) != before else None


def outer_functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTIONS):
            yield child
        else:
            yield from outer_functions(child)


IS_TEST, CHANGE, REACHED = "_septet_is_called_by_test", "_septet_other", ".septet_reached"
HELPERS = f"""
import os as _septet_os
_septet_reached = _septet_os.path.abspath("{REACHED}")

def {IS_TEST}(depth=2):
    import os, sys
    caller = sys._getframe(depth).f_code.co_filename
    name, folder = os.path.basename(caller), os.path.basename(os.path.dirname(caller))
    if not (name.startswith(("test", "conftest")) or name.endswith("_test.py") or folder == "tests"):
        return False
    with open(_septet_reached, "a") as file:
        file.write(os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0] + "\\n")
    return True

def {CHANGE}(value, calls=[0]):
    if not {IS_TEST}(3):
        return value
    calls[0] += 1
    number, kind = calls[0], type(value)
    if kind is bool:
        return not value
    if kind in (int, float, complex):
        return -value - number
    if kind in (str, bytes):
        return f"?{{number}}" if kind is str else b"?%d" % number
    if kind in (list, tuple, set, frozenset):
        return kind([("?", number)])
    if kind is dict:
        return {{"?": number}}
    return object()
"""


def other_results(source: str) -> str | None:
    """Make each function return another value to a test: of the same type if it is a builtin one, and never the same
    value twice; also instead of raising an exception.
    """
    tree = parse_module(source)
    if tree is None:
        return None
    before = ast.dump(tree)
    tree = OtherResults().visit(tree)
    if ast.dump(tree) == before:
        return None
    head = next((place for place, one in enumerate(tree.body) if not is_head(one)), len(tree.body))
    tree.body[head:head] = ast.parse(HELPERS).body
    return unparse(tree)


def only_reached(tests: TestReport, reached: str) -> TestReport:
    """Mark tests that called no changed function as not run, since the control says nothing about them."""
    names = set(reached.splitlines())
    cases = [one if one.id in names else replace(one, outcome="not run") for one in tests.cases]
    return replace(tests, cases=tuple(cases))


class OtherResults(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self.change(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self.change(node)

    def change(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        if is_generator(node) or all(is_idle(one) for one in node.body):
            return node
        self.generic_visit(node)
        handler = ast.parse(f"try: pass\nexcept Exception:\n if {IS_TEST}(): return object()\n raise").body[0]
        assert isinstance(handler, ast.Try)
        handler.body = node.body
        node.body = [handler]
        return node

    def visit_Return(self, node: ast.Return) -> ast.Return:
        if node.value is None:
            return node
        return ast.Return(ast.Call(ast.Name(CHANGE, ast.Load()), [node.value], []))


def is_head(statement: ast.stmt) -> bool:
    """Whether the statement must come first in a module: its docstring, or an import from `__future__`."""
    return is_idle(statement) or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__")


OPERATORS: Mapping[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


class Mutation(ast.NodeTransformer):
    """Changes function bodies; signatures, decorators and annotations are not changed."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [self.visit(one) for one in node.body]
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.body = [self.visit(one) for one in node.body]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.value = self.visit(node.value) if node.value else None
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return node if is_idle(node) else self.generic_visit(node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        node.value = self.visit(node.value)
        return node


class Operators(Mutation):
    """Replaces operators by their opposites, and inverts conditions."""

    def visit(self, node: ast.AST) -> ast.AST:
        opposite = OPERATORS.get(type(node))
        return opposite() if opposite else super().visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        test = node.test
        self.generic_visit(node)
        node.test = test.operand if isinstance(test, ast.UnaryOp) else ast.UnaryOp(ast.Not(), test)
        return node


class Constants(Mutation):
    """Replaces constants by others of the same type."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        match node.value:
            case bool():
                return ast.Constant(not node.value)
            case int() | float():
                return ast.Constant(node.value + 1)
            case str():
                return ast.Constant("".join(chr(ord(sign) ^ 1) for sign in node.value))
            case bytes():
                return ast.Constant(bytes(sign ^ 1 for sign in node.value))
            case _:
                return node


MUTANTS: tuple[ControlName, ...] = ("results", "operators", "constants")
"""In the order in which they run: most tests detect the first."""

TRANSFORMATIONS: Mapping[ControlName, Callable[[str], str | None]] = {
    "hollow": empty_functions,
    "results": other_results,
    "operators": lambda source: mutate(source, Operators()),
    "constants": lambda source: mutate(source, Constants()),
}


RUNNER_TEXT, RUNNER_VARIABLE = re.compile(r"_?pytest(\.\w+)*"), re.compile(r"(?:PYTEST|SEPTET)_\w*")
TEST_LIBRARIES = re.compile(r"pytest\w*|_pytest|unittest|doctest|hypothesis")
LOOKUPS = {"get", "endswith", "startswith", "find_spec", "getenv"}


Sign = ast.expr | ast.stmt


def tampering(sources: Mapping[str, str], before: Mapping[str, str] = MappingProxyType({})) -> str:
    """Why tests of these files prove nothing, from the files alone: the program asks whether it is being tested, or
    a test replaces a part of it, or a file hides a library of the tests. Empty if no sign of it is found.

    What a project's own files, `before` the change, did already may have its reasons.
    """
    for path in sources:
        if path not in before and TEST_LIBRARIES.fullmatch(path.partition("/")[0].removesuffix(".py")):
            return f"{path} hides the library of that name from the tests"
    program = {path: text for path, text in sources.items() if not is_test(path)}
    names = {path.rpartition("/")[2].removesuffix(".py") for path in program}
    tests = {path: text for path, text in sources.items() if is_test(path)}
    if place := new_sign(tests, before, lambda tree: replaced_functions(tree, names)):
        return f"{place} replaces a part of the program"
    if place := new_sign(program, before, uses_any):
        return f"{place} is equal to whatever a test wants"
    return asking(program, before)


def asking(program: Mapping[str, str], before: Mapping[str, str] = MappingProxyType({})) -> str:
    """Where the program asks whether it is being tested; empty if it does not."""
    trees = [tree for text in program.values() if (tree := parse_module(text)) is not None]
    imported = {name.partition(".")[0] for tree in trees for name in imported_modules(tree)}
    place = new_sign(program, before, lambda tree: questions_about_tests(tree, imported))
    return f"{place} asks whether it is being tested" if place else ""


def new_sign(
    sources: Mapping[str, str], before: Mapping[str, str], signs: Callable[[ast.Module], Iterator[Sign]]
) -> str:
    """File and line of the first sign that the project did not have before; empty if there is none."""

    def found(text: str) -> list[Sign]:
        tree = parse_module(text)
        return [] if tree is None else list(signs(tree))

    for path, text in sources.items():
        old = set(map(ast.unparse, found(before.get(path, ""))))
        if new := [one.lineno for one in found(text) if ast.unparse(one) not in old]:
            return f"{path}:{min(new)}"
    return ""


def questions_about_tests(tree: ast.Module, imported: Collection[str]) -> Iterator[Sign]:
    """Where a program looks for pytest among modules, variables or arguments, or whether a module is loaded that it
    never imports itself: only its tests would.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr):
            continue
        if isinstance(node, ast.Constant) and RUNNER_VARIABLE.fullmatch(str(node.value)):
            yield node
        about = [str(one.value) for one in asked(node) if isinstance(one, ast.Constant)]
        if any(map(RUNNER_TEXT.fullmatch, about)) or ((name := loaded_module(node)) and name not in imported):
            yield node


def loaded_module(node: ast.expr) -> str:
    """The module whose loading is asked for; empty if none is."""
    match node:
        case ast.Compare(
            left=ast.Constant(value=str(name)), ops=[ast.In() | ast.NotIn()], comparators=[holder]
        ):
            pass
        case ast.Subscript(value=holder, slice=ast.Constant(value=str(name))):
            pass
        case ast.Call(func=ast.Attribute(value=holder, attr="get"), args=[ast.Constant(value=str(name)), *_]):
            pass
        case _:
            return ""
    is_loaded = ast.unparse(holder) in ("sys.modules", "modules")
    return name.partition(".")[0] if is_loaded and name != "__main__" else ""


def asked(node: ast.AST) -> Sequence[ast.AST]:
    """What a comparison, a subscript or a lookup is about."""
    match node:
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.Subscript(slice=key):
            return [key]
        case ast.Call(func=ast.Attribute(attr=name), args=given) if name in LOOKUPS:
            return given
        case _:
            return []


def uses_any(tree: ast.Module) -> Iterator[Sign]:
    """Where a program takes `unittest.mock.ANY`."""
    if "mock" not in {name.rpartition(".")[2] for name in full_imports(tree)}:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).rpartition(".")[2] == "ANY":
            yield node


def full_imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{one.name}" for one in node.names))


def replaced_functions(tree: ast.Module, program: Collection[str]) -> Iterator[Sign]:
    """Where a test puts a function of its own into a module of the program, for good."""
    modules = {
        one.asname or one.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for one in node.names
        if one.name.rpartition(".")[2] in program
    }
    own = {node.name for node in ast.walk(tree) if isinstance(node, (*FUNCTIONS, ast.ClassDef))}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=module))], value=value):
                pass
            case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id=module), _, value]):
                pass
            case _:
                continue
        is_own = isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in own)
        if module in modules and is_own:
            yield node


def prints_text(sources: Mapping[str, str], text: str) -> bool:
    """Whether a program prints the text as it is written in it, whatever it was given."""
    calls = [
        node
        for path, source in sources.items()
        if not is_test(path) and (tree := parse_module(source)) is not None
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    ]
    return any(
        isinstance(given, ast.Constant) and text in str(given.value)
        for call in calls
        if (call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", ""))
        in ("print", "write")
        for given in call.args
    )


def transformed_sources(sources: Mapping[str, str], control: ControlName) -> dict[str, str]:
    """The Python files that the control changes, with their new text."""
    change = TRANSFORMATIONS[control]
    found = {path: change(text) for path, text in sources.items() if path.endswith(".py")}
    return {path: text for path, text in found.items() if text is not None}
