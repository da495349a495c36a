"""Figures of the code's shape. Symptoms to look at, not limits: nothing fails here.

    python scripts/house.py [CHECKOUT]

`CHECKOUT` is another checkout of this project, e.g. a worktree of an older commit.
"""

import ast
import io
import os
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from import_graph import ROOT, Source, deepest_chain, importers

WINDOW = 6
"""Lines in a row that make a duplicate."""
COMMON = 8
"""A run of lines in more places than this is a habit of the code, not a copy."""
IRREGULAR = re.compile(
    "kept told shown said made found given taken written seen known held left met lost heard spoken begun drawn "
    "brought bought built caught chosen come done felt fallen gone got had hidden hit laid led lent let meant paid "
    "put read run sent set sold spent stood stuck taught thought thrown understood unpleased woken won worn".replace(
        " ", "|"
    )
)
NOUNS = re.compile(
    "ceiling ending endings heading king listing meaning morning nothing pricing reasoning ring rating setting "
    "settings spelling spending string strings thing things tracing warning warnings wiring wording encoding "
    "formatting briefing seed feed need speed bed red embed exceed led put read run set hit let come got had".replace(
        " ", "|"
    )
)
TRACE = """
import atexit, inspect, os, runpy, sys, threading
package, out = sys.argv[1], sys.argv[2]
sys.argv[:] = ["septet", *sys.argv[3:]]
ran = set()
def look(frame, event, arg):
    code = frame.f_code
    if event == "call" and code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(package):
        ran.add(code.co_filename)
atexit.register(lambda: (sys.setprofile(None), open(out, "w").write("\\n".join(sorted(ran)))))
threading.setprofile(look)
sys.setprofile(look)
runpy.run_module("septet", run_name="__main__", alter_sys=False)
"""


def names(tree: ast.Module) -> Iterator[str]:
    """The functions and classes that a module defines."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def all_names(source: Source) -> Iterator[str]:
    """Modules, classes, functions, methods and fields. Events are in the past tense, and do not count."""
    for module, tree in source.modules.items():
        yield module.split(".")[-1]
        for node in ast.walk(tree):
            match node:
                case ast.ClassDef(name=name) if not module.endswith("events"):
                    yield name
                    yield from (
                        field.target.id
                        for field in node.body
                        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
                    )
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if not name.startswith(
                    "__"
                ):
                    yield name
                case _:
                    pass


def is_participle(name: str) -> bool:
    """Whether a name is one by itself: `kept`, `_opened`, `Overheard`; `files_changed` says what was changed."""
    word = name.strip("_").lower()
    if "_" in word or re.search(r"[a-z][A-Z]", name) or NOUNS.fullmatch(word):
        return False
    return bool(IRREGULAR.fullmatch(word)) or (len(word) > 4 and word.endswith(("ed", "ing")))


def code_lines(text: str) -> list[str]:
    """The lines that do something, however they are spaced: imports and lone brackets are passed over."""
    lines: dict[int, list[str]] = defaultdict(list)
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines[token.start[0]].append(token.string)
    found = (" ".join(words) for _, words in sorted(lines.items()))
    return [line for line in found if len(line) > 3 and not re.match(r"(from|import)\b", line)]


def duplicate_pairs(source: Source) -> int:
    """Pairs of modules that share a run of lines."""
    places: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for path in source.package.rglob("*.py"):
        lines = code_lines(path.read_text(encoding="utf-8"))
        for start in range(len(lines) - WINDOW + 1):
            places[tuple(lines[start : start + WINDOW])].add(str(path))
    return len({pair for found in places.values() if len(found) <= COMMON for pair in combinations(found, 2)})


def executed(source: Source) -> int:
    """Modules in which a scripted `run GOAL` executes a function."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "modules"
        script = source.root / "tests" / "scripts" / "small.yaml"
        words = ["run", "add", "--yes", "--quiet", "-m", f"scripted:{script}", "-C", f"{scratch}/work"]
        environment = {
            **os.environ,
            "PYTHONPATH": str(source.root / "src"),
            "SEPTET_HOME": f"{scratch}/home",
            "HOME": scratch,
        }
        subprocess.run(
            [sys.executable, "-c", TRACE, str(source.package), str(out), *words],
            env=environment,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return len(out.read_text().splitlines())


def mirrors(source: Source) -> tuple[int, int]:
    """Test files named for a module of the package of their folder, of all outside tests/scenarios."""
    tests = source.root / "tests"
    files = [path.relative_to(tests) for path in tests.rglob("test_*.py")]
    files = [path for path in files if len(path.parts) > 1 and path.parts[0] != "scenarios"]
    modules = {name.replace(".", "/") for name in source.modules}
    named = [path for path in files if str(path.parent / path.stem.removeprefix("test_")) in modules]
    return len(named), len(files)


def figures(source: Source) -> Iterator[tuple[str, str]]:
    graph, count = source.graph, len(source.modules)
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in source.package.rglob("*.py"))
    single = sum(len(found) == 1 for found in importers(graph).values())
    defined = Counter(name for tree in source.modules.values() for name in set(names(tree)))
    used = list(all_names(source))
    participles = sum(map(is_participle, used))
    pairs = duplicate_pairs(source)
    named, tests = mirrors(source)
    yield "modules / lines", f"{count} / {lines}"
    yield "modules with exactly one importer", f"{single} ({single / count:.0%})"
    yield "deepest import chain", str(len(deepest_chain(graph)))
    yield "mean fan-out", f"{sum(map(len, graph.values())) / count:.1f}"
    yield "names defined in several modules", str(sum(times > 1 for times in defined.values()))
    yield "participles as names", f"{participles} of {len(used)} ({participles / len(used):.1%})"
    yield (
        f"pairs of modules with {WINDOW} lines in common",
        f"{pairs} ({10_000 * pairs / lines:.1f} per 10k lines)",
    )
    yield "modules in which `run GOAL` executes a function", str(executed(source))
    yield "test files that mirror a module", f"{named} of {tests} ({named / tests:.0%})"


def main() -> None:
    source = Source(Path(sys.argv[1]).absolute() if sys.argv[1:] else ROOT)
    for title, figure in figures(source):
        print(f"{title:<50} {figure}", flush=True)


if __name__ == "__main__":
    main()
