"""The import graph of a source tree, read with `ast`: what house.py measures and architecture.py draws."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = "septet"
Graph = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Source:
    """The modules of the package below a checkout."""

    root: Path

    @property
    def package(self) -> Path:
        return self.root / "src" / PACKAGE

    @cached_property
    def modules(self) -> dict[str, ast.Module]:
        """Every module with code, by its dotted name below the package."""
        found = {name_of(path.relative_to(self.package)): path for path in sorted(self.package.rglob("*.py"))}
        trees = {name: ast.parse(path.read_bytes()) for name, path in found.items() if name}
        return {name: tree for name, tree in trees.items() if tree.body}

    @cached_property
    def graph(self) -> Graph:
        """Who imports whom when the program runs, lazily or not; imports for the type checker do not count."""
        return {name: frozenset(self.imports(name)) - {name} for name in self.modules}

    def imports(self, name: str) -> Iterator[str]:
        for node in running(self.modules[name]):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
                inside = (node.module or "").removeprefix(PACKAGE).removeprefix(".")
                for alias in node.names:
                    whole = f"{inside}.{alias.name}".removeprefix(".")
                    yield from (one for one in (whole, inside) if one in self.modules)
            elif isinstance(node, ast.Import):
                names = [alias.name.removeprefix(f"{PACKAGE}.") for alias in node.names]
                yield from (one for one in names if one in self.modules)


def name_of(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def running(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node except those under `if TYPE_CHECKING:`."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            yield node
            yield from running(node)


def importers(graph: Graph) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {name: set() for name in graph}
    for name, imported in graph.items():
        for one in imported:
            found[one].add(name)
    return found


def deepest_chain(graph: Graph) -> list[str]:
    """The longest chain of imports. A cycle has no end, and raises."""
    longest: dict[str, list[str]] = {}
    for name in TopologicalSorter(graph).static_order():
        chains = [longest[one] for one in graph[name]]
        longest[name] = [name, *max(chains, key=len)] if chains else [name]
    return max(longest.values(), key=len)


def siblings(graph: Graph, parent: str = "") -> Graph:
    """Who imports whom among the packages and modules right below a package; "" is the root."""
    inside = {name: child(name, parent) for name in graph if child(name, parent)}
    found: dict[str, set[str]] = {top: set() for top in inside.values()}
    for name, top in inside.items():
        found[top] |= {inside[one] for one in graph[name] if one in inside} - {top}
    return {name: frozenset(below) for name, below in found.items()}


def child(name: str, parent: str) -> str:
    """What leads to a module from a package, or "" where it is not in it."""
    prefix = f"{parent}." if parent else ""
    rest = name.removeprefix(prefix) if name.startswith(prefix) else ""
    return rest.split(".")[0]
