"""Deletions: which parts of a program can be taken away so that nothing but the results of its tests changes.

Each condition, table, operand, call, handler and definition of a program gets a switch that takes it away. What
nothing but the tested inputs need is a *special case*: code for the tests, not for the goal. The program with its
switches runs in the sandbox (agents/deletion_program.py); what comes out is judged here. Pure.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import cast

from msgspec.structs import replace

from septet.common.values import Value
from septet.domain.events import SpecialCase
from septet.domain.files import is_test
from septet.domain.special_cases import Call, TestedCase, leaves
from septet.team.controls import is_head, is_idle, parse_module, unparse

OFF, CALLED = "_septet_off", "_septet_called"
DECIDING = ("false", "true", "case", "table", "handler")
TRIVIAL_NUMBERS = (-1, 0, 1)
MOST_SITES = 5000
LONGEST_ROW = 6
UNTOUCHED_CALLS = {
    "super",
    "locals",
    "globals",
    "vars",
    "dir",
    "eval",
    "exec",
    "isinstance",
    "print",
    "range",
}
VALUES = ("v:int:", "v:float:", "v:str:", "v:bool:", "v:list:", "v:tuple:", "v:dict:", "v:complex:")
FEWEST_RESULTS, FEWEST_OF_A_CLASS = 3, 6
"""With fewer results elsewhere, a program is a list of cases rather than a rule with an exception."""


class Place(Value):
    """What the switch `number` takes away, and whether the change has added it."""

    path: str
    line: int
    new: bool
    decides: bool
    """Whether it is a condition, a table or a handler."""


class Switched(Value):
    """A program with a switch for each place."""

    sources: Mapping[str, str]
    places: Mapping[int, Place]
    constants: tuple[int | float | str, ...]
    rows: tuple[tuple[int | float | str, ...], ...] = ()
    """What stands together in the program, as the keys of a table of several columns do."""


class Difference(Value):
    """What taking one place away changes: the results of tested and of other calls, by their number."""

    tested: Mapping[int, str]
    others: Mapping[int, str]


class Outcome(Value):
    """What the switched program gives: for each tested and each other call, and with each place taken away.

    `unsteady` are the tested and the other calls that give something else each time.
    """

    tested: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    unsteady: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    differences: Mapping[int, Difference] = {}
    untried: int = 0
    """Places for which no time was left."""


def with_switches(program: Mapping[str, str], before: Mapping[str, str]) -> Switched:
    """The program's Python files with switches. `before` is what the files held before the change."""
    switches = Switches()
    sources: dict[str, str] = {}
    for path, text in program.items():
        tree = parse_module(text) if path.endswith(".py") and not is_test(path) else None
        if tree is None:
            continue
        old = parse_module(before.get(path, ""))
        switches.open_file(path, known_nodes(old) if old else frozenset())
        sources[path] = switches.switched(tree)
    constants = tuple(dict.fromkeys(one for text in sources for one in literals_of(program[text])))
    rows = tuple(dict.fromkeys(one for text in sources for one in rows_of(program[text])))
    return Switched(sources=sources, places=switches.places, constants=constants, rows=rows)


def rows_of(source: str) -> list[tuple[int | float | str, ...]]:
    """The tuples and lists of literals of a program."""
    tree = parse_module(source)
    nodes = [one for one in ast.walk(tree) if isinstance(one, ast.Tuple | ast.List)] if tree else []
    found = [tuple(one.value for one in node.elts if isinstance(one, ast.Constant)) for node in nodes]
    return [
        tuple(one for one in row if isinstance(one, int | float | str))
        for row, node in zip(found, nodes, strict=True)
        if 1 < len(row) == len(node.elts) <= LONGEST_ROW
    ]


def literals_of(source: str) -> list[int | float | str]:
    """The numbers and texts of a program that inputs could be compared with; docstrings are none."""
    tree = parse_module(source)
    if tree is None:
        return []
    idle = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    found = [one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and id(one) not in idle]
    return [
        one
        for one in found
        if (isinstance(one, str) and 0 < len(one) < 100)
        or (isinstance(one, int | float) and not isinstance(one, bool))
    ]


def can_have_special_cases(program: Mapping[str, str], before: Mapping[str, str]) -> bool:
    """Whether the change has anything in it by which a program could know an input: more than 0, 1 and names."""
    for path, text in program.items():
        if not path.endswith(".py") or is_test(path):
            continue
        old = Counter(literals_of(before.get(path, "")))
        new = Counter(literals_of(text)) - old
        if any(one not in TRIVIAL_NUMBERS and one not in ("__main__", "") for one in new):
            return True
    return False


def known_nodes(tree: ast.Module) -> frozenset[str]:
    return frozenset(ast.unparse(one) for one in ast.walk(tree) if isinstance(one, ast.expr | ast.stmt))


class WithoutConstants(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant(value=None)


def shape(node: ast.AST) -> str:
    """The node without its constants: `n == 2` and `n == 3` have one shape, and are taken away together."""
    return ast.dump(WithoutConstants().visit(ast.parse(ast.unparse(node))))


HELPERS = """
import builtins as _septet_builtins
if not hasattr(_septet_builtins, "_septet_off"):
    import json as _septet_json, operator as _septet_operators, os as _septet_os, sys as _septet_sys
    class _SeptetOff(set):
        reached = set()
        def __contains__(self, number):
            self.reached.add(number)
            return set.__contains__(self, number)
    _septet_off = _septet_builtins._septet_off = _SeptetOff()
    _septet_seen = {}
    _septet_calls = _septet_os.path.abspath(".septet_calls")
    def _septet_operator(left, right, name, one, other):
        if left in _septet_off:
            return one
        if right in _septet_off:
            return other
        return getattr(_septet_operators, name)(one, other)
    def _septet_call(first, last, whose, function, *given, **named):
        if first in _septet_off:
            return given[0]
        if last in _septet_off:
            return given[-1]
        owner = getattr(function, "__self__", None)
        if whose in _septet_off and owner is not None and not isinstance(owner, type(_septet_os)):
            return owner
        return function(*given, **named)
    def _septet_table(number, table):
        return type(table)() if number in _septet_off else table
    def _septet_plain(value, depth=0):
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return len(repr(value)) < 500
        if kind is dict:
            return depth < 5 and len(value) < 200 and all(
                _septet_plain(one, depth + 1) and _septet_plain(other, depth + 1) for one, other in value.items())
        return kind in (list, tuple, set) and depth < 5 and len(value) < 200 and all(
            _septet_plain(one, depth + 1) for one in value)
    def _septet_names(frame, code, first):
        for name, value in list(frame.f_globals.items()):
            if isinstance(value, type) and type(first) is value and code.co_name != "__init__":
                for one in value.__mro__:
                    if getattr(vars(one).get(code.co_name), "__code__", None) is code:
                        yield f"{name}.{code.co_name}", 0
                        break
            if value is first and code.co_name == "__call__":
                yield name, 1
            for _ in range(5):
                if getattr(value, "__code__", None) is code:
                    yield name, 0
                    break
                value = getattr(value, "__wrapped__", None)
    def _septet_is_test(path):
        name, folder = _septet_os.path.basename(path), _septet_os.path.basename(_septet_os.path.dirname(path))
        return name.startswith(("test", "conftest")) or name.endswith("_test.py") or folder == "tests"
    def _septet_called():
        test = _septet_os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        if not test or len(_septet_seen) > 400:
            return
        frame = _septet_sys._getframe(1)
        code = frame.f_code
        if not frame.f_back or not _septet_is_test(frame.f_back.f_code.co_filename):
            return
        if code.co_kwonlyargcount or code.co_flags & 8:
            return
        names = code.co_varnames[: code.co_argcount]
        given = [frame.f_locals[one] for one in names if one in frame.f_locals]
        if code.co_flags & 4:
            given += frame.f_locals.get(code.co_varnames[code.co_argcount], ())
        first = given[0] if given else None
        state = getattr(first, "__dict__", None)
        if type(state) is dict and not _septet_plain(first) and _septet_plain(state):
            given[0] = dict(state)
        for name, skipped in _septet_names(frame, code, first):
            if not given[skipped + ("." in name):] or not all(map(_septet_plain, given[skipped:])):
                continue
            line = [frame.f_globals["__name__"], name, [repr(one) for one in given[skipped:]], test]
            text = _septet_json.dumps(line)
            _septet_seen[text] = _septet_seen.get(text, 0) + 1
            if _septet_seen[text] <= 5:
                if len(_septet_seen) == _septet_seen[text] == 1:
                    text = _septet_json.dumps(_septet_sys.path) + "\\n" + text
                with open(_septet_calls, "a") as file:
                    file.write(text + "\\n")
    for _septet_one in ("operator", "call", "table", "called"):
        setattr(_septet_builtins, "_septet_" + _septet_one, globals()["_septet_" + _septet_one])
"""
OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.MatMult: "matmul",
}


def is_off(number: int) -> ast.expr:
    return ast.Compare(ast.Constant(number), [ast.In()], [ast.Name(OFF, ast.Load())])


def called(name: str, given: list[ast.expr]) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), given, [])


class Switches(ast.NodeTransformer):
    """Puts a switch at each place. What has one shape in one function has one, as have all entries of a table."""

    def __init__(self) -> None:
        self.places: dict[int, Place] = {}
        self._numbers: dict[tuple[str, ...], int] = {}
        self._path = ""
        self._scope: list[str] = []
        self._known: frozenset[str] = frozenset()
        self._compares = False
        """Whether it is within a comparison: that is taken away as a whole, and half of it would be another one."""

    def open_file(self, path: str, known: frozenset[str]) -> None:
        self._path, self._known = path, known

    def switched(self, tree: ast.Module) -> str:
        tree.body = [self._statement(one) for one in tree.body]
        head = next((place for place, one in enumerate(tree.body) if not is_head(one)), len(tree.body))
        tree.body[head:head] = ast.parse(HELPERS).body
        return unparse(tree)

    def number(self, kind: str, node: ast.expr | ast.stmt | ast.match_case, key: str) -> int | None:
        """The switch of this place; None if there are too many."""
        name = (self._path, *self._scope, kind, key)
        found = self._numbers.get(name)
        if found is None and len(self._numbers) >= MOST_SITES:
            return None
        number = self._numbers.setdefault(name, len(self._numbers) + 1)
        old = self.places.get(number)
        place = node.pattern if isinstance(node, ast.match_case) else node
        is_new = ast.unparse(node.pattern if isinstance(node, ast.match_case) else node) not in self._known
        if old is None or (is_new and not old.new):
            self.places[number] = Place(
                path=self._path, line=place.lineno, new=is_new, decides=kind in DECIDING
            )
        return number

    # -- conditions

    def condition(self, node: ast.expr, origin: ast.expr) -> ast.expr:
        """False, or True, instead of what is asked."""
        key = shape(origin)
        for kind, value in (("false", False), ("true", True)):
            if number := self.number(kind, origin, key):
                node = ast.IfExp(is_off(number), ast.Constant(value), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        origin = deepcopy(node)
        outer, self._compares = self._compares, True
        self.generic_visit(node)
        self._compares = outer
        return self.condition(node, origin)

    def asked(self, node: ast.expr) -> ast.expr:
        """A condition with a switch: comparisons get theirs by themselves."""
        if isinstance(node, ast.Compare):
            return self.visit(node)
        if isinstance(node, ast.BoolOp):
            node.values = [self.asked(one) for one in node.values]
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self.asked(node.operand)
            return node
        if isinstance(node, ast.Constant):
            return node
        origin = deepcopy(node)
        return self.condition(self.visit(node), origin)

    def visit_If(self, node: ast.If) -> ast.AST:
        node.test = self.asked(node.test)
        node.body = [self._statement(one) for one in node.body]
        node.orelse = [self._statement(one) for one in node.orelse]
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        node.test = self.asked(node.test)
        node.body = [self._statement(one) for one in node.body]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        node.test = self.asked(node.test)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        return self.asked(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        return self.asked(node) if isinstance(node.op, ast.Not) else self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.iter = self.visit(node.iter)
        node.ifs = [self.asked(one) for one in node.ifs]
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        key = ast.unparse(node.pattern)
        number = None if key == "_" else self.number("case", node, "case")
        if node.guard is not None:
            node.guard = self.asked(node.guard)
        if number is not None:
            is_on = ast.UnaryOp(ast.Not(), is_off(number))
            node.guard = ast.BoolOp(ast.And(), [is_on, node.guard]) if node.guard else is_on
        node.body = [self._statement(one) for one in node.body]
        return node

    # -- values

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        origin = deepcopy(node)
        left, right = self.visit(node.left), self.visit(node.right)
        key = ast.dump(origin)
        numbers = [self.number(kind, origin, key) for kind in ("left", "right")]
        if None in numbers or self._compares:
            return ast.BinOp(left, node.op, right)
        operation = ast.Constant(OPERATORS[type(node.op)])
        return called("_septet_operator", [*map(ast.Constant, numbers), operation, left, right])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        origin = deepcopy(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        self.generic_visit(node)
        starred = any(isinstance(one, ast.Starred) for one in node.args)
        if self._compares or not node.args or name in UNTOUCHED_CALLS or starred:
            return node
        numbers = [self.number(kind, origin, ast.dump(origin)) for kind in ("first", "last", "whose")]
        if None in numbers:
            return node
        return ast.Call(
            ast.Name("_septet_call", ast.Load()),
            [*map(ast.Constant, numbers), node.func, *node.args],
            node.keywords,
        )

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        return self.table(node) if node.keys else node

    def visit_List(self, node: ast.List) -> ast.AST:
        return self.sequence(node)

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        return self.sequence(node)

    def visit_Set(self, node: ast.Set) -> ast.AST:
        return self.table(node)

    def sequence(self, node: ast.List | ast.Tuple) -> ast.AST:
        listed = len(node.elts) > 1 and all(isinstance(one, ast.Constant | ast.Tuple) for one in node.elts)
        return self.table(node) if listed and isinstance(node.ctx, ast.Load) else self.generic_visit(node)

    def table(self, node: ast.Dict | ast.List | ast.Tuple | ast.Set) -> ast.expr:
        """An empty table instead."""
        number = self.number("table", node, f"{node.lineno}:{node.col_offset}")
        if isinstance(node, ast.Dict):
            node.keys = [one and self.entry(one) for one in node.keys]
            node.values = [self.entry(one) for one in node.values]
        else:
            node.elts = [self.entry(one) for one in node.elts]
        return called("_septet_table", [ast.Constant(number), node]) if number else node

    def entry(self, node: ast.expr) -> ast.expr:
        """A part of a table: rows of literals are taken away with the table, not alone."""
        is_row = isinstance(node, ast.Tuple | ast.List) and all(
            isinstance(one, ast.Constant) for one in node.elts
        )
        return node if is_row else self.visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.slice, ast.Tuple):
            node.slice.elts = [self.visit(one) for one in node.slice.elts]
            node.value = self.visit(node.value)
            return node
        return self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        for one in node.values:
            if isinstance(one, ast.FormattedValue):
                one.value = self.visit(one.value)
        return node

    # -- statements

    def _statement(self, node: ast.stmt) -> ast.stmt:
        """The statement, or nothing."""
        optional = isinstance(node, ast.AugAssign | ast.Delete | (ast.FunctionDef)) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        )
        if isinstance(node, ast.Assign):
            optional = any(isinstance(one, ast.Subscript | ast.Attribute) for one in node.targets)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("__"):
            optional = False
        origin = deepcopy(node) if optional else node
        made = self.visit(node)
        number = self.number("statement", origin, ast.dump(origin)) if optional else None
        if number is None:
            return made
        return ast.If(ast.UnaryOp(ast.Not(), is_off(number)), [made], [])

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(node, name, [self._part(one) for one in cast(list[object], value)])
            elif isinstance(value, ast.AST) and name not in ("annotation", "returns"):
                setattr(node, name, self.visit(value))
        return node

    def _part(self, part: object) -> object:
        if isinstance(part, ast.stmt):
            return self._statement(part)
        return self.visit(part) if isinstance(part, ast.AST) else part

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self.function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self.function(node)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._scope.append(node.name)
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        node.args.defaults = [self.visit(one) for one in node.args.defaults]
        node.args.kw_defaults = [one and self.visit(one) for one in node.args.kw_defaults]
        head = 1 if node.body and is_idle(node.body[0]) else 0
        body = [self._statement(one) for one in node.body[head:]]
        node.body = [*node.body[:head], ast.Expr(called(CALLED, [])), *body]
        self._scope.pop()
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        node.body = ast.BoolOp(ast.Or(), [called(CALLED, []), node.body])
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._scope.append(node.name)
        node.body = [self._statement(one) for one in node.body]
        self._scope.pop()
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        place = node.type or node.body[0]
        number = self.number("handler", place, f"handler {node.lineno}")
        node.body = [self._statement(one) for one in node.body]
        if number is not None:
            node.body.insert(0, ast.If(is_off(number), [ast.Raise()], []))
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.value = self.visit(node.value) if node.value else None
        return node


class Answers(Value):
    """All calls and what the whole program gives, as it is judged."""

    tested: Sequence[Call]
    others: Sequence[Call]
    outcome: Outcome
    constants: Sequence[object]


def special_cases(
    switched: Switched, tested: Sequence[Call], others: Sequence[Call], outcome: Outcome, known: str
) -> list[TestedCase]:
    """The tested calls whose results rest on code that no other input needs, one for each place.

    What `known`, the person's own words, says of the call itself is wanted: it is no special case.
    """
    answers = Answers(tested=tested, others=others, outcome=outcome, constants=switched.constants)
    makers: dict[Call, list[str]] = {}
    for one in tested:
        makers.setdefault(replace(one, tests=()), []).extend(one.tests)
    found: dict[str, TestedCase] = {}
    for number, difference in outcome.differences.items():
        place = switched.places[number]
        moved = {index: told for index, told in difference.others.items() if index not in outcome.unsteady[1]}
        for index, told in difference.tested.items() if place.new else ():
            call, gives = tested[index], outcome.tested[index]
            if index in outcome.unsteady[0] or is_trivial(call, gives) or is_named(call, gives, known):
                continue
            general = is_exception(answers, call, moved, told, gives)
            if not needed_here_alone(answers, call, moved, gives, general=general):
                continue
            text = f"{call.module}.{call.text}"
            where = f"{place.path}:{place.line}"
            case = SpecialCase(place=where, call=text, gives=said(gives), without=said(told), general=general)
            before = found.get(text, TestedCase(case=case, tests=()))
            tests = (*before.tests, *makers[replace(call, tests=())])
            found[text] = replace(before, tests=tuple(dict.fromkeys(tests)))
    return list(found.values())


def is_exception(answers: Answers, call: Call, moved: Mapping[int, str], told: str, gives: str) -> bool:
    """Whether the rest of the program is a rule, which also gives a result for this call."""
    results = answers.outcome.others
    same = [
        number
        for number, other in enumerate(answers.others)
        if (other.module, other.name) == (call.module, call.name)
    ]
    rest = [moved.get(number, results[number]) for number in same]
    return is_general(told, gives, rest) and is_covered(gives, [results[number] for number in same])


def needed_here_alone(
    answers: Answers, call: Call, moved: Mapping[int, str], gives: str, *, general: bool
) -> bool:
    """Whether what was taken away is an exception, or a list, of what is tested and of nothing else."""
    if not general and not are_written([*call.inputs, *leaves(said(gives))], answers.constants):
        return False
    others, results = answers.others, answers.outcome.others
    apart = [
        others[one]
        for one in moved
        if not (holds_texts(others[one], call) or (general and is_trivial(others[one], results[one])))
    ]
    return not apart or (general and is_number(gives) and are_listed(apart, answers.constants))


def said(outcome: str) -> str:
    """`5` of `v:int:5`, `raises KeyError` of `e:KeyError`."""
    kind, _, rest = outcome.partition(":")
    return rest.partition(":")[2] if kind == "v" else f"raises {rest}" if kind == "e" else "does not end"


def is_trivial(call: Call, gives: str) -> bool:
    """Whether the call is at the edge of what can be asked: 0, 1, nothing, empty. Rules have such exceptions. Of
    questions that are answered by yes or no, 2 is one as well: it is the only even prime.
    """
    edges = {0, 1, -1, "", None, *([2] if gives.startswith("v:bool:") else [])}
    return all(one in edges for one in call.inputs if not isinstance(one, bytes))


def is_named(call: Call, gives: str, known: str) -> bool:
    """Whether a sentence of the text holds each input of the call and its result."""
    wanted = [*call.inputs, *leaves(said(gives))]
    signs = [re.compile(rf"(?<!\w){re.escape(str(one))}(?!\w)", re.IGNORECASE) for one in wanted]
    return any(all(sign.search(one) for sign in signs) for one in re.split(r"[.;]\s|\n", known))


def is_general(without: str, gives: str, rest: Iterable[str]) -> bool:
    """Whether the program without that code gives a result of the same kind, and different ones elsewhere."""
    results = {one for one in rest if one.startswith("v:") and not one.startswith("v:NoneType")}
    is_alike = kind_of(without) == kind_of(gives) and kind_of(without) != "NoneType"
    wanted = 2 if kind_of(gives) == "bool" else FEWEST_RESULTS
    return without.startswith("v:") and is_alike and len(results) >= wanted


def is_covered(gives: str, others: Sequence[str]) -> bool:
    """Whether the other calls give this result often enough, where a program sorts inputs into few classes: else
    nothing is known of the others of its class.
    """
    classes = {one for one in others if one.startswith("v:")}
    return len(classes) > len(others) // 4 or others.count(gives) >= FEWEST_OF_A_CLASS


def is_plain(outcome: str) -> bool:
    """Whether a call gives a value that is written as a literal."""
    return outcome.startswith(VALUES)


def kind_of(outcome: str) -> str:
    kind = outcome.split(":")[1]
    return "number" if kind in ("int", "float") else kind


def is_number(outcome: str) -> bool:
    return outcome.startswith(("v:int:", "v:float:"))


def are_listed(calls: Sequence[Call], constants: Sequence[object]) -> bool:
    """Whether the program names each of these inputs: it has a list of exceptions, and no rule."""
    known = {*constants, *(-one for one in constants if isinstance(one, int | float)), 0, 1, -1}
    return all(one in known for call in calls for one in call.inputs)


def holds_texts(call: Call, tested: Call) -> bool:
    """Whether a call has the texts of the tested one in it: code that looks for these finds them there, too."""
    wanted, there = texts_of(tested), "".join(texts_of(call))
    return bool(wanted) and all(one in there for one in wanted)


def texts_of(call: Call) -> list[str]:
    """The arguments, if all of them are texts."""
    given = [ast.literal_eval(one) for one in call.given]
    return given if not call.is_method and all(isinstance(one, str) for one in given) else []


def are_written(inputs: Iterable[object], constants: Sequence[object]) -> bool:
    """Whether each of these stands in the program."""
    return all(one in constants for one in inputs)
