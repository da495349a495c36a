"""Finds imports that a reply forgot: names of the standard library that are used but not bound. Pure."""

import ast
import builtins
from collections.abc import Iterable

MEMBERS = {
    "typing": (
        "Any Callable ClassVar Deque DefaultDict Dict Final FrozenSet Generator Generic Hashable Iterable Iterator "
        "List Literal Mapping NamedTuple NoReturn Optional Sequence Set Tuple Type TypedDict TypeVar Union "
        "cast overload"
    ),
    "collections": "ChainMap Counter OrderedDict defaultdict deque namedtuple",
    "itertools": (
        "accumulate chain combinations combinations_with_replacement count cycle dropwhile groupby islice pairwise "
        "permutations product repeat starmap takewhile tee zip_longest"
    ),
    "functools": "cache cached_property cmp_to_key lru_cache partial reduce singledispatch total_ordering wraps",
    "math": (
        "acos asin atan atan2 ceil comb cos degrees exp factorial floor fsum gcd hypot inf isclose isqrt lcm log log10 "
        "log2 perm pi prod radians sin sqrt tan trunc"
    ),
    "heapq": "heapify heappop heappush heappushpop heapreplace nlargest nsmallest",
    "bisect": "bisect_left bisect_right insort",
    "dataclasses": "asdict dataclass field",
    "abc": "ABC abstractmethod",
    "enum": "Enum IntEnum auto",
    "decimal": "Decimal ROUND_HALF_UP getcontext",
    "fractions": "Fraction",
    "datetime": "date timedelta timezone",
    "pathlib": "Path",
    "copy": "deepcopy",
    "operator": "itemgetter attrgetter mul",
    "statistics": "mean median mode stdev",
    "string": "ascii_letters ascii_lowercase ascii_uppercase digits punctuation",
    "contextlib": "contextmanager suppress",
}
"""Members that are often used without their module, and whose names are not ambiguous."""

MODULE_OF_MEMBER = {name: module for module, names in MEMBERS.items() for name in names.split()}
MODULES = frozenset(
    """abc argparse array asyncio base64 bisect calendar cmath collections contextlib copy csv ctypes dataclasses
    datetime decimal enum fractions functools hashlib heapq html inspect io itertools json logging math numbers
    operator os pathlib pickle pytest queue random re secrets shutil sqlite3 statistics string struct subprocess sys
    tempfile textwrap threading time timeit traceback types typing unicodedata unittest urllib uuid warnings
    zlib""".split()  # a list reads worse
)
BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__"}
SAME_NAME = {
    "datetime": "now today utcnow fromisoformat strptime fromtimestamp combine",
    "time": "",
    "copy": "",
}
"""Modules with a member of the same name, and the attributes that show that the member is meant."""


def missing_imports(tree: ast.Module) -> list[str]:
    """The import lines for names that the module uses but does not bind."""
    unbound = used_names(tree) - bound_names(tree) - BUILTINS
    lines = [
        f"from {MODULE_OF_MEMBER[name]} import {name}" for name in sorted(unbound) if name in MODULE_OF_MEMBER
    ]
    for name in sorted(unbound & MODULES - MODULE_OF_MEMBER.keys()):
        attributes = attributes_of(tree, name)
        own = set(SAME_NAME.get(name, "").split())
        called = name in called_functions(tree)
        is_member = bool(own & attributes) or (called and name in SAME_NAME)
        lines.append(f"from {name} import {name}" if is_member else f"import {name}")
    return lines


def free_names(node: ast.AST) -> set[str]:
    """The names that a statement uses but does not bind; approximate, because scopes are not distinguished."""
    declared = {name for one in ast.walk(node) if isinstance(one, ast.Global) for name in one.names}
    return used_names(node) - bound_names(node) | declared


def used_names(tree: ast.AST) -> set[str]:
    return {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


def called_functions(tree: ast.AST) -> set[str]:
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {function.id for function in calls if isinstance(function, ast.Name)}


def attributes_of(tree: ast.AST, name: str) -> set[str]:
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return {node.attr for node in found if isinstance(node.value, ast.Name) and node.value.id == name}


def bound_names(tree: ast.AST) -> set[str]:
    """Every name that is bound in any scope: such a name is never imported."""
    return {name for node in ast.walk(tree) for name in binds(node)}


def binds(node: ast.AST) -> Iterable[str]:
    """The names that one node binds by itself."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return (name,)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.arg(arg=name):
            return (name,)
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return tuple((alias.asname or alias.name).partition(".")[0] for alias in names)
        case ast.ExceptHandler(name=str(name)):
            return (name,)
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return (name,)
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return tuple(names)
        case _:
            return ()
