"""Draws a seeded sample of mutants of our own code, and runs the tests that mirror each one.

A mutant is one comparison, condition, operator, constant or result changed in place; the file is put back whatever
happens. Files under version control have to be clean. Mutants are drawn where logic decides, by weight. A survivor is a
missing test, or a change that makes no difference: look at it.
"""

import argparse
import ast
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "septet"
WEIGHTS = {
    "team": 4,
    "domain": 3,
    "sandboxes": 2,
    "models": 2,
    "chat": 2,
    "ways": 2,
    "agents": 2,
    "workspace": 1,
    "tools": 1,
    "stores": 1,
    "settings": 1,
}
MOST_FILES = 4
"""Tests that mirror a module, and tests beside them that import it: no more files than that."""
SECONDS = 600
OPPOSITES: dict[type[ast.AST], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.And: "or",
    ast.Or: "and",
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
}


@dataclass(frozen=True)
class Mutant:
    """What stands at a place of a file, and what is put there."""

    path: Path
    line: int
    start: int
    end: int
    before: str
    after: str

    @property
    def text(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.before!r} -> {self.after!r}"


def mutants_of(path: Path) -> list[Mutant]:
    source = path.read_text()
    offsets = [0]
    for line in source.encode().splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    content = source.encode()

    def place(node: ast.expr | ast.stmt, after: str) -> Mutant:
        start = offsets[node.lineno - 1] + node.col_offset
        end = offsets[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        return Mutant(path, node.lineno, start, end, content[start:end].decode(), after)

    tree = ast.parse(source)
    bodies = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inner = {id(node): node for body in bodies for one in body.body for node in ast.walk(one)}
    found = [place(node, after) for node in inner.values() for node, after in changes(node)]
    return [one for one in found if one.before != one.after and "\n" not in one.before]


def changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """What may stand in a node's place."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPPOSITES:
            yield node, f"{ast.unparse(left)} {OPPOSITES[type(op)]} {ast.unparse(right)}"
        case ast.BoolOp(op=op, values=values):
            yield node, "(" + f" {OPPOSITES[type(op)]} ".join(f"({ast.unparse(one)})" for one in values) + ")"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"bool({ast.unparse(operand)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPPOSITES and not is_text(left, right):
            yield node, f"({ast.unparse(left)} {OPPOSITES[type(op)]} {ast.unparse(right)})"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value)):
            yield node, str(value + 1)
        case ast.Return(value=ast.expr()):
            yield node, "return None"
        case _:
            return


def is_text(*nodes: ast.expr) -> bool:
    return any(
        isinstance(one, ast.JoinedStr | ast.List) or isinstance(getattr(one, "value", 0), str)
        for one in nodes
    )


def draw(seed: int, count: int) -> list[Mutant]:
    """A package by its weight, then a module by its size, then a place: no file has all of them."""
    chance = random.Random(seed)  # noqa: S311  # a sample that can be drawn again
    known = {
        name: {path: mutants_of(path) for path in sorted((SOURCE / name).rglob("*.py"))} for name in WEIGHTS
    }
    drawn: dict[str, Mutant] = {}
    while len(drawn) < count:
        name = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        paths = [path for path in known[name] if known[name][path] and tests_of(path)]
        path = chance.choices(paths, [len(known[name][path]) for path in paths])[0]
        one = chance.choice(known[name][path])
        drawn.setdefault(one.text, one)
    return list(drawn.values())


def tests_of(path: Path) -> list[Path]:
    """The tests that mirror the module first, then those that import it."""
    module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    folder = ROOT / "tests" / path.relative_to(SOURCE).parts[0]
    mirror = folder / f"test_{path.stem}.py"
    others = [one for one in sorted(folder.rglob("test_*.py")) if one != mirror and module in one.read_text()]
    return [*([mirror] if mirror.exists() else []), *others][:MOST_FILES]


def is_killed(mutant: Mutant) -> bool:
    whole = mutant.path.read_bytes()
    changed = whole[: mutant.start] + mutant.after.encode() + whole[mutant.end :]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-n",
        "0",
        "-m",
        "not torture",
        "-p",
        "no:cacheprovider",
    ]
    try:
        mutant.path.write_bytes(changed)
        run = subprocess.run(
            [*command, *map(str, tests_of(mutant.path))],
            cwd=ROOT,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        mutant.path.write_bytes(whole)
    return run.returncode != 0


def end(_signal: int, _frame: FrameType | None) -> None:
    """A file that is changed is put back first."""
    sys.exit(143)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--count", type=int, default=40)
    options.add_argument("--list", action="store_true", help="say which ones, and run nothing")
    given = options.parse_args()
    signal.signal(signal.SIGTERM, end)
    dirty = subprocess.run(["git", "status", "--porcelain", "src"], cwd=ROOT, capture_output=True, check=True)
    if dirty.stdout and not given.list:
        sys.exit("src has changes that are not committed: mutants are written over it")
    sample, killed = draw(given.seed, given.count), 0
    for number, mutant in enumerate(sample, start=1):
        word = "drawn" if given.list else "killed" if is_killed(mutant) else "SURVIVED"
        killed += word == "killed"
        print(f"{number:3} {word:8} {mutant.text}", flush=True)
    if not given.list:
        print(f"{killed} of {len(sample)} killed ({killed / len(sample):.0%}), seed {given.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
