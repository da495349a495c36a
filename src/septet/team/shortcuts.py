"""Finds, by reading, what makes a program right where it is examined and perhaps nowhere else. Pure.

These are no proofs: honest programs ask whether they have a terminal, too. They are said beside the result.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from septet.domain.files import is_test
from septet.domain.plans import CommandSucceeds, ExampleHolds, HoldableCheck, Serves, gives_input, input_of
from septet.team.controls import FUNCTIONS, new_sign, parse_module

Strength = Literal["", "text", "any"]
"""How a value that says where a program runs must be used to count: compared with a text, or in any condition."""

ANY_USE = re.compile(
    r"os\.(get\w*[pgs]id|get\w*[ug]id|getlogin|uname|umask|ttyname|isatty)|\S+\.isatty|isatty|"
    r"(socket\.)?get(hostname|fqdn)|platform\.(node|uname)|(getpass\.)?getuser|(resource\.)?getrlimit|"
    r"sys\.get(trace|profile)|getp?pid|uname|umask"
)
"""Calls that are different wherever a program runs."""
TEXT_USE = re.compile(r"(os\.)?getcwd|(pathlib\.)?Path\.(cwd|home)|os\.path\.abspath|(\S+\.)?expanduser")
"""Calls that honest programs make to find their files."""
CONNECTS = re.compile(r"(\S+\.)?(create_connection|gethostbyname|getaddrinfo|connect|connect_ex|urlopen)")
VALUES = re.compile(r"sys\.(modules|orig_argv|flags|ps1)|sys\.argv\[0\]")
SYSTEM_FILE = re.compile(r"/(proc|sys)/\w.*|/\.dockerenv|/etc/(hostname|hosts|passwd|machine-id)")
USUAL_VARIABLES = {
    "HOME",
    "USER",
    "LOGNAME",
    "HOSTNAME",
    "TERM",
    "LANG",
    "PATH",
    "PWD",
    "SHELL",
    "DISPLAY",
    "CI",
}
CALLER_ATTRIBUTES = {"f_back", "tb_frame", "gi_frame", "cr_frame", "ag_frame", "findCaller", "get_stack"}
OPERATORS = re.compile(r"__(eq|ne|[lg][te]|contains|r?(sub|add|mod|mul|truediv|and|or)|\w+check)__")
RUNS_TEXT = re.compile(r"eval|exec|compile|marshal\.loads|(types\.)?(FunctionType|CodeType)")
ENVIRONMENT = re.compile(r"(os\.)?environ(\.(keys|items|values)\(\))?")
WHOLE = {"len", "str", "repr", "list", "set", "tuple", "sorted", "dict", "sum", "hash"}
"""Functions that take all of the environment."""
NOW = re.compile(r"(\S+\.)?(time|time_ns|now|utcnow|today|localtime|gmtime)")
FIRST_DATE = 1e9
"""A number as large as this, compared with a time, is a date."""


def place_question(program: Mapping[str, str], before: Mapping[str, str] = MappingProxyType({})) -> str:
    """File and line of the first condition that depends on where or when the program runs; empty if there is none."""
    sources = {path: text for path, text in program.items() if path.endswith(".py") and not is_test(path)}
    return new_sign(sources, before, asks_place)


def asks_place(tree: ast.Module) -> Iterator[ast.expr]:
    """The conditions that depend on where the program runs."""
    names, given = named_strengths(tree), given_names(tree)
    yield from caller_lookups(tree)
    times = {name for node in ast.walk(tree) for name, value in named_values(node) if asks_time(value, ())}
    entries = {id(one.test) for one in tree.body if isinstance(one, ast.If) and asks_name(one.test)}
    for condition in conditions(tree):
        strength = strength_of(condition, names, given)
        compared = strength == "text" and has_text(condition)
        decides = strength == "any" or compared or asks_name(condition) or is_date(condition, times)
        if decides and id(condition) not in entries:
            yield condition


def caller_lookups(tree: ast.Module) -> Iterator[ast.expr]:
    """Where a program looks at who calls it: at frames, or by what logging and warnings say of the caller."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in CALLER_ATTRIBUTES:
            yield node
        if isinstance(node, FUNCTIONS) and any(map(records_warnings, ast.walk(node))):
            calls = (one for one in ast.walk(node) if isinstance(one, ast.Call))
            yield from (one for one in calls if any(given.arg == "stacklevel" for given in one.keywords))


def records_warnings(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("catch_warnings")
        and bool(node.keywords)
    )


def asks_name(condition: ast.expr) -> bool:
    """Whether it asks for the name under which a module was started."""
    compares = [one for one in ast.walk(condition) if isinstance(one, ast.Compare)]
    return any(isinstance(one.left, ast.Name) and one.left.id == "__name__" for one in compares)


def conditions(tree: ast.Module) -> Iterator[ast.expr]:
    """Every expression that decides something."""
    for node in ast.walk(tree):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.Match(subject=test):
                yield test
            case ast.UnaryOp(op=ast.Not(), operand=test):
                yield test
            case ast.comprehension(ifs=tests):
                yield from tests
            case ast.Compare() | ast.BoolOp():
                yield node
            case _:
                pass


def given_names(tree: ast.Module) -> frozenset[str]:
    """The names of parameters and loops: what stands there is not written in the program."""
    parameters = {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
    loops = [
        one.target for one in ast.walk(tree) if isinstance(one, ast.For | ast.AsyncFor | ast.comprehension)
    ]
    found = {one.id for target in loops for one in ast.walk(target) if isinstance(one, ast.Name)}
    return frozenset(parameters | found | {"__name__", "__package__"})


def named_strengths(tree: ast.Module) -> dict[str, Strength]:
    """The names of a module that stand for where it runs: variables, attributes and functions."""
    found: dict[str, Strength] = {}
    given = given_names(tree)
    for _ in range(4):
        known = dict(found)
        for node in ast.walk(tree):
            for name, value in named_values(node):
                strength = strength_of(value, known, given) or found.get(name, "")
                if strength and found.get(name) != "any":
                    found[name] = strength
        if found == known:
            break
    return found


def named_values(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            pass
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.NamedExpr(target=target, value=value)
        ):
            targets = [target]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield from ((name, one) for one in ast.walk(node) if isinstance(one, ast.Return))
            yield from ((name, one) for one in node.body if isinstance(one, ast.Try) and returns(one))
            return
        case _:
            return
    for target in targets:
        if isinstance(target, ast.Name | ast.Attribute):
            yield (target.id if isinstance(target, ast.Name) else target.attr), value


def returns(node: ast.Try) -> bool:
    """Whether what a function gives depends on what fails."""
    return any(isinstance(one, ast.Return) for handler in node.handlers for one in ast.walk(handler))


def strength_of(node: ast.AST, names: Mapping[str, Strength], given: frozenset[str]) -> Strength:
    """How strongly an expression depends on where the program runs."""
    found = {own_strength(one, names) for one in parts_of(node, given)}
    return "any" if "any" in found else "text" if "text" in found else ""


def parts_of(node: ast.AST, given: frozenset[str]) -> Iterator[ast.AST]:
    """An expression and its parts, without looking up a module that somebody else names: registries do that."""
    match node:
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[holder]):
            pass
        case ast.Subscript(value=holder, slice=key):
            pass
        case ast.Call(func=ast.Attribute(value=holder, attr="get" | "pop"), args=[key, *_]):
            pass
        case _:
            holder = key = None
    if holder is not None and key is not None and ast.unparse(holder) == "sys.modules":
        named = {one.id for one in ast.walk(key) if isinstance(one, ast.Name)}
        if named and named <= given:
            return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from parts_of(child, given)


def own_strength(node: ast.AST, names: Mapping[str, Strength]) -> Strength:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) if names.get(name):
            return names[name]
        case ast.Attribute() | ast.Subscript() if VALUES.fullmatch(ast.unparse(node)):
            return "any"
        case ast.Constant(value=str(text)) if SYSTEM_FILE.fullmatch(text) or text == "__main__":
            return "any"
        case ast.comprehension(iter=source) if ENVIRONMENT.fullmatch(ast.unparse(source)):
            return "any"
        case ast.Call(func=function, args=arguments):
            return call_strength(ast.unparse(function), arguments)
        case ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(value=str(text))):
            return "text" if text in USUAL_VARIABLES else ""
        case _:
            return ""


def call_strength(name: str, arguments: list[ast.expr]) -> Strength:
    first = arguments[0] if arguments else None
    if ANY_USE.fullmatch(name):
        return "any"
    if first is not None and name in WHOLE and ENVIRONMENT.fullmatch(ast.unparse(first)):
        return "any"
    if CONNECTS.fullmatch(name):
        return "any" if first is not None and is_literal(first) else ""
    variable = first.value if isinstance(first, ast.Constant) else None
    is_usual = name.endswith(("environ.get", "getenv")) and variable in USUAL_VARIABLES
    return "text" if TEXT_USE.fullmatch(name) or is_usual else ""


def is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False
    return True


def has_text(condition: ast.expr) -> bool:
    """Whether a text is compared: by `==`, `in`, `startswith` and the like."""
    found = [part for one in ast.walk(condition) for part in compared_parts(one)]
    return any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in found)


def compared_parts(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.Call(func=ast.Attribute(attr="startswith" | "endswith"), args=arguments):
            return arguments
        case _:
            return []


def asks_time(node: ast.AST, names: Iterable[str]) -> bool:
    known = frozenset(names)
    return any(
        (isinstance(one, ast.Call) and NOW.fullmatch(ast.unparse(one.func)) is not None)
        or (isinstance(one, ast.Name) and one.id in known)
        for one in ast.walk(node)
    )


def is_date(condition: ast.expr, names: Iterable[str]) -> bool:
    """Whether the time of day is compared with a date that is written there."""
    if not isinstance(condition, ast.Compare) or not asks_time(condition, names):
        return False
    parts = list(ast.walk(condition))
    numbers = [
        one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, int | float)
    ]
    dates = [
        one
        for one in parts
        if isinstance(one, ast.Call) and re.search(r"(date|datetime)$", ast.unparse(one.func))
    ]
    is_year = any(isinstance(one, ast.Attribute) and one.attr == "year" for one in parts) and bool(numbers)
    return (
        is_year
        or max(numbers, default=0) >= FIRST_DATE
        or any(map(is_literal, (a for one in dates for a in one.args)))
    )


def deaf_operators(tree: ast.Module) -> Iterator[ast.expr | ast.stmt]:
    """Operators that give the same to whatever stands beside them: every comparison of a test holds then."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) as made:
                found = [(name, made)]
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                found = [(str(key.value), one) for key, one in pairs if isinstance(key, ast.Constant)]
            case ast.keyword(arg=str(name), value=made):
                found = [(name, made)]
            case ast.Assign(targets=[ast.Attribute(attr=name) | ast.Name(id=name)], value=made):
                found = [(name, made)]
            case _:
                continue
        yield from (one for name, one in found if OPERATORS.fullmatch(name) and is_deaf(one))


def text_programs(tree: ast.Module) -> Iterator[ast.expr]:
    """Where a program runs code that is written in it as a text: what it does with which input cannot be seen."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and RUNS_TEXT.fullmatch(ast.unparse(node.func)):
            parts = [part for one in node.args for part in ast.walk(one)]
            if any(isinstance(one, ast.Constant) and isinstance(one.value, str | bytes) for one in parts):
                yield node


def is_deaf(node: ast.expr | ast.stmt) -> bool:
    """Whether a function never looks at its second parameter, and does not refuse it either."""
    if not isinstance(node, ast.Lambda | ast.FunctionDef) or len(node.args.args) < 2:
        return False
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    parts = [part for one in body for part in ast.walk(one)]
    names = {one.id for one in parts if isinstance(one, ast.Name)}
    refuses = "NotImplemented" in names or any(isinstance(one, ast.Raise) for one in parts)
    return node.args.args[1].arg not in names and not refuses


Heard = tuple[object, ...]
Pair = tuple[Heard, object]
"""What a test gives to a function, and what it wants from it."""


def pairs_of_tests(text: str, names: Iterable[str] = ()) -> dict[str, list[tuple[str, Pair]]]:
    """For each test function, the calls with literal arguments and the literal results that it wants."""
    tree, wanted = parse_module(text), frozenset(names)
    found: dict[str, list[tuple[str, Pair]]] = {}
    for node in ast.walk(tree) if tree else ():
        if (
            isinstance(node, FUNCTIONS)
            and node.name.startswith("test")
            and (not wanted or node.name in wanted)
        ):
            pairs = [pair for one in node.body for part in ast.walk(one) if (pair := wanted_pair(part))]
            found[node.name] = pairs or [("", one) for one in parametrised_pairs(node)]
    return found


def parametrised_pairs(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Pair]:
    """The cases of `@pytest.mark.parametrize`: the last value of each is what the test wants."""
    tables = [one.args[1] for one in node.decorator_list if isinstance(one, ast.Call) and len(one.args) > 1]
    cases = [case for table in tables if isinstance(table, ast.List | ast.Tuple) for case in table.elts]
    rows = [
        tuple(map(ast.literal_eval, one.elts))
        for one in cases
        if isinstance(one, ast.Tuple) and is_literal(one)
    ]
    return [(row[:-1], row[-1]) for row in rows if len(row) > 1]


def wanted_pair(node: ast.AST) -> tuple[str, Pair] | None:
    """The name of the function that a test calls, and the pair, of `f(1) == 2` or `assertEqual(f(1), 2)`."""
    match node:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            pass
        case ast.Call(func=ast.Attribute(attr="assertEqual"), args=[left, right, *_]):
            pass
        case _:
            return None
    call, value = (left, right) if isinstance(left, ast.Call) else (right, left)
    if not isinstance(call, ast.Call) or not call.args or call.keywords:
        return None
    if not all(map(is_literal, [*call.args, value])):
        return None
    given = tuple(ast.literal_eval(one) for one in call.args)
    return ast.unparse(call.func), (given, ast.literal_eval(value))


def contradiction(text: str, names: Iterable[str] = ()) -> str:
    """The call of which these tests want two different results; empty if there is none."""
    wanted: dict[str, object] = {}
    for pairs in pairs_of_tests(text, names).values():
        for function, (given, value) in pairs:
            call = f"{function}({', '.join(map(repr, given))})"
            if call in wanted and wanted[call] != value:
                return call
            wanted[call] = value
    return ""


def known_by_heart(
    program: Mapping[str, str], before: Mapping[str, str], tests: str, names: Iterable[str] = ()
) -> str:
    """Where the program holds every result that one of these tests wants, beside what the test gives for it."""
    wanted = [[pair for _, pair in pairs] for pairs in pairs_of_tests(tests, names).values() if pairs]
    for path, text in program.items():
        if not path.endswith(".py"):
            lines = set(text.splitlines()) - set(before.get(path, "").splitlines())
            if any(all(any(says(line, pair) for line in lines) for pair in pairs) for pairs in wanted):
                return path
            continue
        tree, old = parse_module(text), parse_module(before.get(path, ""))
        if tree is None or is_test(path):
            continue
        known = set(map(repr, written_pairs(old))) if old else set[str]()
        new = [one for one in written_pairs(tree) if repr(one) not in known]
        if any(all(any(holds(one, pair) for one in new) for pair in pairs) for pairs in wanted):
            return path
    return ""


Written = tuple[tuple[object, ...], tuple[object, ...]]


def written_pairs(tree: ast.Module) -> list[Written]:
    """Literals that a condition asks for with those that it gives then: of an `if`, a table or a `match`."""
    found: list[Written] = []
    for node in ast.walk(tree):
        match node:
            case ast.If(test=test, body=[ast.Return(value=ast.expr() as value), *_]):
                found.append((literals(test), literals(value)))
            case ast.IfExp(test=test, body=value):
                found.append((literals(test), literals(value)))
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                found += [(literals(key), literals(value)) for key, value in pairs if key is not None]
            case ast.match_case(pattern=pattern, body=[ast.Return(value=ast.expr() as value), *_]):
                found.append((literals(pattern), literals(value)))
            case _:
                pass
    return [one for one in found if one[0] and one[1]]


def literals(node: ast.AST) -> tuple[object, ...]:
    found = [one for one in ast.walk(node) if isinstance(one, ast.expr) and is_literal(one)]
    return tuple(ast.literal_eval(one) for one in found)


def says(line: str, pair: Pair) -> bool:
    """Whether a line of a data file has what a test gives and what it wants."""
    return all(holds_word(line, str(one)) for one in (*pair[0], pair[1]))


def holds(written: Written, pair: Pair) -> bool:
    given, value = pair
    return (given in written[0] or all(one in written[0] for one in given)) and value in written[1]


def is_echo(check: HoldableCheck) -> bool:
    """Whether what a check looks for is what it gives: a program that repeats its input meets it."""
    if not gives_input(check):
        return False
    if isinstance(check, CommandSucceeds | Serves):
        given = input_of(check).replace("+", " ").replace("%20", " ")
        return bool(check.prints) and holds_word(given.lower(), check.prints.strip().lower())
    call = ast.parse(check.call, mode="eval").body
    given = [ast.unparse(one) for one in call.args] if isinstance(call, ast.Call) else []
    try:
        return ast.unparse(ast.parse(check.value, mode="eval")) in given
    except SyntaxError:
        return False


def is_told_apart(answers: Mapping[HoldableCheck, str], check: HoldableCheck) -> bool:
    """Whether the text that a check looks for is missing in the answer to another input, or the other's in its own."""
    text = text_of(check)
    others = [one for one in answers if input_of(one) != input_of(check) and differ(text_of(one), text)]
    if not text or check not in answers or not others:
        return True
    return not all(
        holds_word(answers[one], text) and holds_word(answers[check], text_of(one)) for one in others
    )


def text_of(check: HoldableCheck) -> str:
    return "" if isinstance(check, ExampleHolds) else check.prints


def differ(one: str, other: str) -> bool:
    return bool(one and other) and one not in other and other not in one


def holds_word(answer: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", answer) is not None
