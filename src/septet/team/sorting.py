"""Sorts the code of any reply into a module and its tests. Pure.

Statements that define something, or bind a name that a definition uses, go to the module. Asserts and tests go to
the tests. Other calls (prints, demonstrations, `main()`) go under `if __name__ == "__main__":`, so that the module
can be imported and the program still be started. Missing imports are added.
"""

import ast
import re
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from septet.common.values import Value
from septet.domain.plans import Refusal
from septet.domain.replies import PYTHON, Block, CodeFile, code_blocks
from septet.team.controls import is_idle
from septet.team.goal_examples import StatedExample, condition_of
from septet.team.imports import bound_names, free_names, missing_imports, used_names

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
LANGUAGES = frozenset({*PYTHON, "pycon", "doctest", "plaintext", "code"})
CONTINUES = re.compile(r"(?:[ \t)\]}#]|(?:else|elif|except|finally)\b|$)")
PROMPT = re.compile(r"^\s*(?:>>>|\.\.\.) ?")
DEFINES = re.compile(r"^(?:def|class|import|from) ", re.MULTILINE)
CHARACTERS = str.maketrans(
    {"“": '"', "”": '"', "‘": "'", "’": "'", "\u00a0": " ", "\u200b": "", "\ufeff": "", "\t": "    "}  # noqa: RUF001  # what replies hold
)
MAX_MERGED_CHUNKS = 40
"""A text in triple quotes may contain many lines that look like separate statements."""


class Statement(Value):
    """A top-level statement of a reply, with the comments above it and the number of its block."""

    node: ast.stmt
    text: str
    block: int


def statements_of(reply: str) -> tuple[list[Statement], list[str]]:
    """The statements of a reply's Python blocks in order, and the parts that are not Python.

    If the blocks have none, the whole reply is tried: its only fence may be the closing one.
    """
    blocks = forgiving_blocks(reply)
    found, lost = statements_in([block for block in blocks if block.language in LANGUAGES] or blocks)
    if found:
        return [*found, *asserts_outside(reply, blocks)], lost
    return statements_in([Block(language="", path="", text=reply.replace("```", ""))])


def asserts_outside(reply: str, blocks: Sequence[Block]) -> Iterator[Statement]:
    """Asserts between or below the blocks, one on a line."""
    inside = {line for block in blocks for line in block.text.split("\n")}
    for line in reply.split("\n"):
        body = parse_statements(line) if line.startswith("assert ") and line not in inside else None
        if body and isinstance(body[0], ast.Assert) and not isinstance(body[0].test, ast.Name | ast.Constant):
            yield Statement(node=body[0], text=line, block=len(blocks))


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
    """The fenced blocks of a reply, including one that is never closed.

    A block that is never closed may be truncated, so an assert at its end is dropped.
    """
    blocks = code_blocks(reply)
    if isinstance(blocks, Refusal):
        whole, _, last = reply.rpartition("\n")
        rest = whole if last.lstrip().startswith("assert") else reply
        once = code_blocks(f"{rest}\n```")
        blocks = code_blocks(f"{rest}\n```\n```") if isinstance(once, Refusal) else once
    return [] if isinstance(blocks, Refusal) else blocks


def is_prose(node: ast.stmt) -> bool:
    """Whether the statement is prose that happens to be valid Python, like `Sure` or `Example: Usage`."""
    if isinstance(node, ast.AnnAssign):
        named = isinstance(node.annotation, ast.Name) and not node.annotation.id[:1].islower()
        return node.value is None and named
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Name | ast.Tuple | ast.Attribute)


def parse_forgiving(text: str) -> tuple[list[tuple[ast.stmt, str]], list[str]]:
    """Parse statements with their text. Only the pieces that are not Python are dropped, not the whole block."""
    for source in cleaned_texts(text):
        body = parse_statements(source)
        if body is not None:
            return list(with_text(source, body)), []
    return parse_pieces(textwrap.dedent(text.translate(CHARACTERS)))


def cleaned_texts(text: str) -> Iterator[str]:
    yield text
    yield textwrap.dedent(text)
    yield textwrap.dedent(text.translate(CHARACTERS))
    if ">>>" in text:
        lines = [line for line in text.split("\n") if PROMPT.match(line)]
        yield "\n".join(PROMPT.sub("", line) for line in lines)


def parse_statements(source: str) -> list[ast.stmt] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parse_pieces(source: str) -> tuple[list[tuple[ast.stmt, str]], list[str]]:
    """Parse chunk by chunk; a chunk that does not parse alone is tried with the chunks that follow."""
    chunks = chunks_of(source)
    found: list[tuple[ast.stmt, str]] = []
    lost: list[str] = []
    place = 0
    while place < len(chunks):
        for end in range(place + 1, min(len(chunks), place + MAX_MERGED_CHUNKS) + 1):
            text = "\n".join(chunks[place:end])
            if (body := parse_statements(text)) is not None:
                found += with_text(text, body)
                place = end
                break
        else:
            kept, rest = trim_truncated(chunks[place])
            found += kept
            lost.append(rest)
            place += 1
    return found, lost


def chunks_of(source: str) -> list[str]:
    """Split the source into chunks: a line that may begin a statement, and the lines that continue it."""
    chunks: list[str] = []
    for line in source.split("\n"):
        if chunks and CONTINUES.match(line):
            chunks[-1] += "\n" + line
        else:
            chunks.append(line)
    return chunks


def trim_truncated(chunk: str) -> tuple[list[tuple[ast.stmt, str]], str]:
    """Keep the complete lines of a truncated test; any other truncated definition is lost."""
    lines = chunk.split("\n")
    if lines[0].startswith(("def test", "async def test", "class Test")):
        for end in range(len(lines) - 1, 1, -1):
            text = "\n".join(lines[:end])
            if (body := parse_statements(text)) is not None:
                return list(with_text(text, body)), "\n".join(lines[end:])
    inner = textwrap.dedent("\n".join(lines[1:]))
    if DEFINES.search(inner) and not lines[0].startswith(("def ", "class ", "async ", "@")):
        found, lost = parse_pieces(inner)
        return found, "\n".join([lines[0], *lost])
    return [], chunk


def with_text(source: str, body: Sequence[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    """Each statement with its lines and the comments above it; statements that share a line are unparsed."""
    lines = source.split("\n")
    done = 0
    for place, node in enumerate(body):
        first = first_line_number(node)
        last = node.end_lineno or first
        following = first_line_number(body[place + 1]) if place + 1 < len(body) else last + 1
        if first <= done or following <= last:
            done = last
            yield node, ast.unparse(node)
            continue
        comments = [line for line in lines[done : first - 1] if line.lstrip().startswith("#")]
        done = last
        yield node, "\n".join([*comments, *lines[first - 1 : last]])


def first_line_number(node: ast.stmt) -> int:
    marks = node.decorator_list if isinstance(node, Definition) else []
    return min([node.lineno, *(mark.lineno for mark in marks)])


Cause = Literal["", "empty", "no code", "not Python", "no definition", "wrong name"]
Kind = Literal["module", "test", "assert", "action", "drop"]
KNOWN_MODULES = {*sys.stdlib_module_names, "pytest", "__future__"}
TEST_LIBRARIES = frozenset({"pytest", "unittest", "doctest"})
OWN_MODULE_NAMES = frozenset(
    {"solution", "main", "your_module", "my_module", "module", "your_module_name", "__main__"}
)
"""Module names that small models use for the module that they have just written."""
REASONS: dict[Cause, str] = {
    "empty": "the reply is empty",
    "no code": "the module did not come; send it in one code block",
    "not Python": "the code is not Python, or was cut off; send less, and nothing but code",
    "no definition": "the module did not come; define what the goal asks for",
}


class SortedReply(Value):
    """The module and tests of a reply. `cause` says why it has no module; it is empty if it has one."""

    module: str = ""
    tests: str = ""
    asserts: tuple[str, ...] = ()
    """The condition of every assert, each by itself."""
    cause: Cause = ""


class SortedStatements(Value):
    """The statements of a reply by their destination."""

    module: tuple[Statement, ...] = ()
    actions: tuple[Statement, ...] = ()
    """Statements that run only if the module is started; those that were under the main guard are indented."""
    tests: tuple[Statement, ...] = ()
    asserts: tuple[Statement, ...] = ()


def sorted_files(
    reply: str, program: str, tests: str, wanted: Sequence[str] = (), stated: Sequence[StatedExample] = ()
) -> tuple[CodeFile, ...] | Refusal:
    """The files of the module and its tests. If the reply has no tests, the examples `stated` by the goal are used."""
    module = program.rsplit("/", 1)[-1].removesuffix(".py")
    reading = read_reply(reply, wanted, module)
    if reading.cause:
        lacking = f"{', '.join(wanted)} is not defined; define what the goal asks for under that name"
        return Refusal(reason=REASONS.get(reading.cause, lacking))
    checks = reading.tests or test_module(module, (), [test_statement(one) for one in stated], wanted)
    if not checks:
        return Refusal(reason="its tests did not come; after the module, send a few asserts that test it")
    return (CodeFile(path=program, text=reading.module), CodeFile(path=tests, text=checks))


def read_reply(reply: str, wanted: Sequence[str] = (), module: str = "") -> SortedReply:
    """Read a reply that should define the `wanted` names in a module of that name."""
    if not reply.strip():
        return SortedReply(cause="empty")
    statements, lost = statements_of(reply)
    statements = without_copies(statements)
    if not statements:
        return SortedReply(cause=cause_of_loss(lost, "no code"))
    parts = sort_statements(statements, frozenset(wanted), module)
    code = module_text(parts, wanted)
    cause = cause_of(code, wanted, lost)
    asserts = tuple(dict.fromkeys(conditions(one.node for one in (*parts.asserts, *parts.tests))))
    return SortedReply(
        module="" if cause else code, tests=tests_text(parts, module, wanted), asserts=asserts, cause=cause
    )


def cause_of_loss(lost: Sequence[str], otherwise: Cause) -> Cause:
    return "not Python" if any("def " in one for one in lost) else otherwise


def cause_of(code: str, wanted: Sequence[str], lost: Sequence[str]) -> Cause:
    """Why the code is not the wanted module; empty if it is."""
    body = parse_statements(code) or []
    if not body or (wanted and not any(isinstance(node, Definition | ast.Assign) for node in body)):
        return cause_of_loss(lost, "no definition")
    if set(wanted) <= bound_names(ast.Module(body=body, type_ignores=[])):
        return ""
    cut = any(f"def {name}(" in one for one in lost for name in wanted)
    return "not Python" if cut else "wrong name"


def without_copies(statements: Sequence[Statement]) -> list[Statement]:
    """Drop repeated definitions: the first one that is not hollow counts."""
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
    """Whether the body is only `pass`, `...`, a docstring or `raise NotImplementedError`."""
    body = node.body if isinstance(node, Definition) else []
    return all(is_idle(one) or isinstance(one, ast.Raise) for one in body)


def sort_statements(statements: Sequence[Statement], wanted: frozenset[str], module: str) -> SortedStatements:
    defined = {one.node.name for one in statements if isinstance(one.node, Definition)}
    own = OWN_MODULE_NAMES | {module, *wanted}
    sorted_: dict[Kind, list[Statement]] = {"module": [], "test": [], "assert": [], "action": [], "drop": []}
    guarded: list[Statement] = []
    for one in statements:
        if is_main_guard(one.node):
            inside = [
                (statement_kind(part.node, wanted, own, defined), part) for part in guarded_statements(one)
            ]
            sorted_["assert"] += [part for kind, part in inside if kind == "assert"]
            guarded += [part for kind, part in inside if kind in ("module", "action")]
        else:
            sorted_[statement_kind(one.node, wanted, own, defined)].append(one)
    kept, actions = keep_needed(sorted_["module"], sorted_["action"])
    return SortedStatements(
        module=tuple(one for one in statements if one in kept),
        actions=(*(indent(one) for one in actions), *guarded),
        tests=tuple(sorted_["test"]),
        asserts=tuple(sorted_["assert"]),
    )


def is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def guarded_statements(guard: Statement) -> list[Statement]:
    """The statements under `if __name__ == "__main__":`, separate and still indented."""
    (node,) = parse_statements(guard.text) or [guard.node]
    body = node.body if isinstance(node, ast.If) else []
    found = [Statement(node=one, text=text, block=guard.block) for one, text in with_text(guard.text, body)]
    return [one if is_indented(one) else indent(one) for one in found]


def is_indented(one: Statement) -> bool:
    return one.text.startswith("    ") and not one.text.startswith("     ")


def indent(one: Statement) -> Statement:
    """Indent a statement by one level; it is unparsed, because multi-line strings must not change."""
    text = textwrap.indent(ast.unparse(one.node), "    ")
    return Statement(node=one.node, text=text, block=one.block)


def statement_kind(node: ast.stmt, wanted: frozenset[str], own: frozenset[str], defined: set[str]) -> Kind:
    match node:
        case ast.Assert():
            return "assert"
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return "test" if is_test_name(name) and name not in wanted else "module"
        case ast.Import(names=names):
            return kind_of_import({alias.name.partition(".")[0] for alias in names}, own)
        case ast.ImportFrom(module=source, names=names):
            root = (source or ".").partition(".")[0]
            written_here = root not in KNOWN_MODULES and {alias.name for alias in names} <= {
                "*",
                *defined,
                *wanted,
            }
            return "drop" if written_here else kind_of_import({root}, own)
        case ast.Expr(value=ast.Constant()):
            return "drop"
        case _:
            if runs_tests(node, wanted):
                return "drop"
            parts = list(ast.walk(node))
            if any(isinstance(one, Definition | ast.Import | ast.ImportFrom) for one in parts):
                return "module"
            return "assert" if any(isinstance(one, ast.Assert) for one in parts) else "action"


def is_test_name(name: str) -> bool:
    return name.lower().startswith("test")


def kind_of_import(roots: set[str], own: frozenset[str]) -> Kind:
    """Drop an import of the module itself; an import of a test library goes to the tests."""
    if roots & TEST_LIBRARIES:
        return "test"
    return "drop" if roots & (own | {""}) - KNOWN_MODULES else "module"


def runs_tests(node: ast.stmt, wanted: frozenset[str]) -> bool:
    """Whether the statement runs tests (`test_f()`, `pytest.main()`, `unittest.main()`), which the runner does."""
    calls = [ast.unparse(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)]
    return any(
        name.partition(".")[0] in TEST_LIBRARIES or (is_test_name(name) and name not in wanted)
        for name in calls
    )


def keep_needed(
    module: Sequence[Statement], actions: Sequence[Statement]
) -> tuple[list[Statement], list[Statement]]:
    """Move actions that bind a name used by the module into the module, and what these use in turn."""
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


def module_text(parts: SortedStatements, wanted: Sequence[str]) -> str:
    body = "\n\n\n".join(statement_groups(parts.module))
    tree = ast.Module(body=parse_statements(body) or [], type_ignores=[])
    guard = "\n".join(["if __name__ == '__main__':", *(one.text for one in parts.actions)])
    text = "\n\n\n".join(filter(None, [body, alias_for(tree, wanted), guard if parts.actions else ""]))
    if not text.strip():
        return ""
    return (
        with_imports(text, missing_imports(ast.Module(body=parse_statements(text) or [], type_ignores=[])))
        + "\n"
    )


def statement_groups(statements: Sequence[Statement]) -> list[str]:
    """The texts of statements; neighbouring statements that define nothing are joined."""
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
    """Insert import lines at the top, after imports from `__future__`."""
    if not lines:
        return text
    head = [line for line in text.split("\n") if line.startswith("from __future__")]
    rest = [line for line in text.split("\n") if not line.startswith("from __future__")]
    gap = [""] if rest[0].startswith(("import ", "from ")) else ["", ""]
    return "\n".join([*head, *lines, *gap, *rest])


def alias_for(tree: ast.Module, wanted: Sequence[str]) -> str:
    """An assignment that gives the wanted name to what the reply named otherwise; empty if nothing fits.

    It may be another spelling, a method of the only class, or the only function.
    """
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


def tests_text(parts: SortedStatements, module: str, wanted: Sequence[str]) -> str:
    """The test file; statements that bind names for bare asserts come before them."""
    checks = [ast.unparse(one.node) for one in parts.asserts]
    used = set[str]().union(*(used_names(one.node) for one in parts.asserts))
    needed = [
        textwrap.dedent(one.text)
        for one in parts.actions
        if isinstance(one.node, ast.Assign | ast.AnnAssign) and bound_names(one.node) & used
    ]
    has_tests = any(isinstance(one.node, Definition) for one in parts.tests)
    return (
        test_module(module, [*(one.text for one in parts.tests), *needed], checks, wanted)
        if has_tests or checks
        else ""
    )


def test_module(module: str, texts: Sequence[str], asserts: Sequence[str], wanted: Iterable[str]) -> str:
    """A test file for the module: the texts unchanged, and a test function for each assert.

    A function of the module that is called `test_…` because the goal says so is no test of it.
    """
    if not texts and not asserts:
        return ""
    stated = [
        f"def test_stated_{number}():\n{textwrap.indent(one, '    ')}"
        for number, one in enumerate(asserts, start=1)
    ]
    no_tests = "\n".join(f"{name}.__test__ = False" for name in wanted if is_test_name(name))
    body = "\n\n\n".join([*([no_tests] if no_tests else []), *texts, *stated])
    tree = ast.Module(body=parse_statements(body) or [], type_ignores=[])
    private = sorted(
        name for name in used_names(tree) - bound_names(tree) if name.startswith("_") and name[1:2] != "_"
    )
    own = [f"from {module} import *", *([f"from {module} import {', '.join(private)}"] if private else [])]
    return with_imports(body, [*missing_imports(tree), *own]) + "\n"


def test_statement(example: StatedExample) -> str:
    """The statement that tests an example."""
    if example.raises:
        return f"with pytest.raises({example.raises}):\n    {example.call}"
    return f"assert {condition_of(example)}"


def conditions(nodes: Iterable[ast.stmt]) -> list[str]:
    return [ast.unparse(one.test) for top in nodes for one in ast.walk(top) if isinstance(one, ast.Assert)]
