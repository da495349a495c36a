"""From any reply to a module and its tests: definitions are sorted from calls, asserts become tests. Pure.

A statement stays in the module if it defines something, or binds a name that a definition uses. What checks goes
to the tests. What merely acts (prints, demonstrations, `main()`) is put under `if __name__ == "__main__":`, so that
the module can be imported and a program still be started. Imports that were forgotten are added.
"""

import ast
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Literal

from septet.common.values import Value
from septet.domain.plans import Refusal
from septet.domain.replies import CodeFile
from septet.team.controls import is_idle
from septet.team.goal_examples import StatedExample, condition_of
from septet.team.imports import bound_names, free_names, missing_imports, used_names
from septet.team.statements import Definition, Statement, parse, statements_of, with_text

Cause = Literal["", "empty", "no code", "not Python", "no definition", "wrong name"]
Kind = Literal["module", "test", "assert", "action", "drop"]
KNOWN = {*sys.stdlib_module_names, "pytest", "__future__"}
TEST_LIBRARIES = frozenset({"pytest", "unittest", "doctest"})
OWN_NAMES = frozenset(
    {"solution", "main", "your_module", "my_module", "module", "your_module_name", "__main__"}
)
"""What small models call the module that they have just written."""
REASONS: dict[Cause, str] = {
    "empty": "the reply is empty",
    "no code": "the module did not come; send it in one code block",
    "not Python": "the code is not Python, or was cut off; send less, and nothing but code",
    "no definition": "the module did not come; define what the goal asks for",
}


class Reading(Value):
    """What a reply holds. `cause` says why it has no module, and is empty where it has one."""

    module: str = ""
    tests: str = ""
    asserts: tuple[str, ...] = ()
    """The condition of every assert, each by itself."""
    cause: Cause = ""


class Parts(Value):
    """The statements of a reply by what becomes of them."""

    module: tuple[Statement, ...] = ()
    actions: tuple[Statement, ...] = ()
    """What is only done when the module is started; what stood under the guard before is indented."""
    tests: tuple[Statement, ...] = ()
    asserts: tuple[Statement, ...] = ()


def sorted_files(
    reply: str, program: str, tests: str, wanted: Sequence[str] = (), stated: Sequence[StatedExample] = ()
) -> tuple[CodeFile, ...] | Refusal:
    """The module and its tests. Where no tests came, the examples that the goal has `stated` are the tests."""
    module = program.rsplit("/", 1)[-1].removesuffix(".py")
    reading = read_reply(reply, wanted, module)
    if reading.cause:
        lacking = f"{', '.join(wanted)} is not defined; define what the goal asks for under that name"
        return Refusal(reason=REASONS.get(reading.cause, lacking))
    checks = reading.tests or test_module(module, (), [test_statement(one) for one in stated])
    if not checks:
        return Refusal(reason="its tests did not come; after the module, send a few asserts that test it")
    return (CodeFile(path=program, text=reading.module), CodeFile(path=tests, text=checks))


def read_reply(reply: str, wanted: Sequence[str] = (), module: str = "") -> Reading:
    """Read a reply that should define the `wanted` names in a module of that name."""
    if not reply.strip():
        return Reading(cause="empty")
    statements, lost = statements_of(reply)
    statements = without_copies(statements)
    if not statements:
        return Reading(cause=cause_of_loss(lost, "no code"))
    parts = sort_statements(statements, frozenset(wanted), module)
    code = module_text(parts, wanted)
    cause = cause_of(code, wanted, lost)
    asserts = tuple(dict.fromkeys(conditions(one.node for one in (*parts.asserts, *parts.tests))))
    return Reading(
        module="" if cause else code, tests=tests_text(parts, module), asserts=asserts, cause=cause
    )


def cause_of_loss(lost: Sequence[str], otherwise: Cause) -> Cause:
    return "not Python" if any("def " in one for one in lost) else otherwise


def cause_of(code: str, wanted: Sequence[str], lost: Sequence[str]) -> Cause:
    """Why this is not the module that was wanted."""
    body = parse(code) or []
    if not body or (wanted and not any(isinstance(node, Definition | ast.Assign) for node in body)):
        return cause_of_loss(lost, "no definition")
    if set(wanted) <= bound_names(ast.Module(body=body, type_ignores=[])):
        return ""
    cut = any(f"def {name}(" in one for one in lost for name in wanted)
    return "not Python" if cut else "wrong name"


def without_copies(statements: Sequence[Statement]) -> list[Statement]:
    """A definition that a later block repeats counts once: the first one that does something."""
    kept: dict[str, Statement] = {}
    result: list[Statement] = []
    for one in statements:
        if isinstance(one.node, Definition):
            earlier = kept.get(one.node.name)
            if earlier is not None and earlier.block != one.block:
                if not is_hollow(earlier.node):
                    continue
                result.remove(earlier)
            kept[one.node.name] = one
        result.append(one)
    return result


def is_hollow(node: ast.stmt) -> bool:
    """A body of `pass`, `...`, a docstring or `raise NotImplementedError`."""
    body = node.body if isinstance(node, Definition) else []
    return all(is_idle(one) or isinstance(one, ast.Raise) for one in body)


def sort_statements(statements: Sequence[Statement], wanted: frozenset[str], module: str) -> Parts:
    defined = {one.node.name for one in statements if isinstance(one.node, Definition)}
    own = OWN_NAMES | {module, *wanted}
    sorted_: dict[Kind, list[Statement]] = {"module": [], "test": [], "assert": [], "action": [], "drop": []}
    guarded: list[Statement] = []
    for one in statements:
        if is_main_guard(one.node):
            inside = [(kind_of(part.node, wanted, own, defined), part) for part in guarded_statements(one)]
            sorted_["assert"] += [part for kind, part in inside if kind == "assert"]
            guarded += [part for kind, part in inside if kind in ("module", "action")]
        else:
            sorted_[kind_of(one.node, wanted, own, defined)].append(one)
    kept, actions = keep_needed(sorted_["module"], sorted_["action"])
    return Parts(
        module=tuple(one for one in statements if one in kept),
        actions=(*(indent(one) for one in actions), *guarded),
        tests=tuple(sorted_["test"]),
        asserts=tuple(sorted_["assert"]),
    )


def is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def guarded_statements(guard: Statement) -> list[Statement]:
    """The statements under `if __name__ == "__main__":`, each by itself and still indented."""
    (node,) = parse(guard.text) or [guard.node]
    body = node.body if isinstance(node, ast.If) else []
    found = [Statement(node=one, text=text, block=guard.block) for one, text in with_text(guard.text, body)]
    return [one if is_indented(one) else indent(one) for one in found]


def is_indented(one: Statement) -> bool:
    return one.text.startswith("    ") and not one.text.startswith("     ")


def indent(one: Statement) -> Statement:
    """One level deeper; written anew, because texts over several lines must not change."""
    text = textwrap.indent(ast.unparse(one.node), "    ")
    return Statement(node=one.node, text=text, block=one.block)


def kind_of(node: ast.stmt, wanted: frozenset[str], own: frozenset[str], defined: set[str]) -> Kind:
    match node:
        case ast.Assert():
            return "assert"
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return "test" if is_test_name(name) and name not in wanted else "module"
        case ast.Import(names=names):
            return kind_of_import({alias.name.partition(".")[0] for alias in names}, own)
        case ast.ImportFrom(module=source, names=names):
            root = (source or ".").partition(".")[0]
            written_here = root not in KNOWN and {alias.name for alias in names} <= {"*", *defined, *wanted}
            return "drop" if written_here else kind_of_import({root}, own)
        case ast.Expr(value=ast.Constant()):
            return "drop"
        case _:
            if runs_tests(node, wanted):
                return "drop"
            holds = any(isinstance(one, Definition | ast.Import | ast.ImportFrom) for one in ast.walk(node))
            return "module" if holds else "action"


def is_test_name(name: str) -> bool:
    return name.lower().startswith("test")


def kind_of_import(roots: set[str], own: frozenset[str]) -> Kind:
    """A module that imports itself loses that line; a test library belongs to the tests."""
    if roots & TEST_LIBRARIES:
        return "test"
    return "drop" if roots & (own | {""}) - KNOWN else "module"


def runs_tests(node: ast.stmt, wanted: frozenset[str]) -> bool:
    """`test_f()`, `pytest.main()`, `unittest.main()`: the runner runs the tests."""
    calls = [ast.unparse(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)]
    return any(
        name.partition(".")[0] in TEST_LIBRARIES or (is_test_name(name) and name not in wanted)
        for name in calls
    )


def keep_needed(
    module: Sequence[Statement], actions: Sequence[Statement]
) -> tuple[list[Statement], list[Statement]]:
    """Actions that bind what a definition uses belong to the module, and what those use in turn."""
    kept, left = [*module], [*actions]
    if not any(isinstance(one.node, Definition) for one in kept):
        return [*kept, *left], []
    while True:
        used = set[str]().union(*(free_names(one.node) for one in kept))
        needed = [one for one in left if bound_names(one.node) & used]
        if not needed:
            return kept, left
        left = [one for one in left if one not in needed]
        kept += needed


def module_text(parts: Parts, wanted: Sequence[str]) -> str:
    body = "\n\n\n".join(groups(parts.module))
    tree = ast.Module(body=parse(body) or [], type_ignores=[])
    guard = "\n".join(["if __name__ == '__main__':", *(one.text for one in parts.actions)])
    text = "\n\n\n".join(filter(None, [body, alias_for(tree, wanted), guard if parts.actions else ""]))
    if not text.strip():
        return ""
    return with_imports(text, missing_imports(ast.Module(body=parse(text) or [], type_ignores=[]))) + "\n"


def groups(statements: Sequence[Statement]) -> list[str]:
    """Texts; neighbouring lines that define nothing stand together."""
    found: list[str] = []
    joins = False
    for one in statements:
        simple = not isinstance(one.node, Definition)
        if simple and joins:
            found[-1] += "\n" + one.text
        else:
            found.append(one.text)
        joins = simple
    return found


def with_imports(text: str, lines: Sequence[str]) -> str:
    """Imports go to the top, but after those from `__future__`."""
    if not lines:
        return text
    head = [line for line in text.split("\n") if line.startswith("from __future__")]
    rest = [line for line in text.split("\n") if not line.startswith("from __future__")]
    gap = [""] if rest[0].startswith(("import ", "from ")) else ["", ""]
    return "\n".join([*head, *lines, *gap, *rest])


def alias_for(tree: ast.Module, wanted: Sequence[str]) -> str:
    """A name for what came under another one: another spelling, a method of the only class, the only function."""
    top = {name for node in tree.body for name in top_names(node)}
    lacking = [name for name in wanted if name not in top]
    if len(lacking) != 1:
        return ""
    (name,) = lacking
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    for other in functions:
        if other.replace("_", "").lower() == name.replace("_", "").lower():
            return f"{name} = {other}"
    for owner in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        if any(isinstance(method, ast.FunctionDef) and method.name == name for method in owner.body):
            return f"{name} = {owner.name}().{name}"
    return f"{name} = {functions[0]}" if len(functions) == 1 else ""


def top_names(node: ast.stmt) -> set[str]:
    return {node.name} if isinstance(node, Definition) else bound_names(node)


def tests_text(parts: Parts, module: str) -> str:
    """The tests as pytest wants them; names that bare asserts need are bound before them."""
    checks = [ast.unparse(one.node) for one in parts.asserts]
    used = set[str]().union(*(used_names(one.node) for one in parts.asserts))
    needed = [
        textwrap.dedent(one.text)
        for one in parts.actions
        if isinstance(one.node, ast.Assign | ast.AnnAssign) and bound_names(one.node) & used
    ]
    has_tests = any(isinstance(one.node, Definition) for one in parts.tests)
    return (
        test_module(module, [*(one.text for one in parts.tests), *needed], checks)
        if has_tests or checks
        else ""
    )


def test_module(module: str, texts: Sequence[str], asserts: Sequence[str]) -> str:
    """A test file about the module: texts as they are, and a test for each assert."""
    if not texts and not asserts:
        return ""
    stated = [f"def test_stated_{number}():\n    {one}" for number, one in enumerate(asserts, start=1)]
    body = "\n\n\n".join([*texts, *stated])
    tree = ast.Module(body=parse(body) or [], type_ignores=[])
    private = sorted(
        name for name in used_names(tree) - bound_names(tree) if name.startswith("_") and name[1:2] != "_"
    )
    own = [f"from {module} import *", *([f"from {module} import {', '.join(private)}"] if private else [])]
    return with_imports(body, [*missing_imports(tree), *own]) + "\n"


def test_statement(example: StatedExample) -> str:
    """The statement that tests an example."""
    if example.raises:
        return f"with pytest.raises({example.raises}):\n        {example.call}"
    return f"assert {condition_of(example)}"


def conditions(nodes: Iterable[ast.stmt]) -> list[str]:
    return [ast.unparse(one.test) for top in nodes for one in ast.walk(top) if isinstance(one, ast.Assert)]
