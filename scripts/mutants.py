"""Draws a seeded sample of mutants of our own code, and runs the tests that can notice each one.

python scripts/mutants.py --seed N --count 60 --minutes 8    as far as the time goes; again, and it goes on
python scripts/mutants.py --seed N --count 60 --list         say which ones, and run nothing
python scripts/mutants.py --seed N --packages team,chat      of these packages alone

A mutant is one comparison, condition, operator, constant or result changed in place; the file is put back whatever
happens. Files under version control have to be clean. Mutants are drawn where logic decides, by weight. The tests are
those that call the changed function (`scripts/touched.py` keeps which), those that mirror its module first, then the
cheapest, as many as take half a minute of the processor. Of a test file that has changed since, what was kept of its
tests counts as far as they are still there, and if it is near the module it is run whole, as is one that nothing is
kept of; where few tests are known to call the function, files that import the module anywhere are run as well.
A survivor is a missing test, or a change that makes no difference: look at it.
"""

import argparse
import ast
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Literal

from touched import CACHE, Touched, functions_of, is_clean, kept, kept_before

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
"""Tests that mirror a module, and tests beside them that import it: no more files than that, if nothing is kept."""
FEW_TESTS = 5
"""If no more tests are known to call a function, others that may do so are run as well."""
MOST_SECONDS = 20.0
"""Of the processor, as the tests took it when they were recorded."""
BUSIEST, LONGEST = 180, 1200
"""Seconds of one process, and by the clock; a mutant that takes more hangs."""
NOT_FOUND, UNCOLLECTED = 4, "\nERROR tests/"
"""How pytest ends where a test is not found, and how it says that its file could not even be imported."""
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


Outcome = Literal["killed", "hung", "SURVIVED", "no tests", "not run"]


@dataclass(frozen=True)
class Mutant:
    """What stands at a place of a file, and what is put there."""

    path: Path
    line: int
    start: int
    end: int
    before: str
    after: str
    function: str
    """Its whole name, as `scripts/touched.py` keeps it."""

    @property
    def text(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.before!r} -> {self.after!r}"


def mutants_of(path: Path) -> list[Mutant]:
    source = path.read_text()
    offsets = [0]
    for line in source.encode().splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    content = source.encode()

    def place(node: ast.expr | ast.stmt, after: str, function: str) -> Mutant:
        start = offsets[node.lineno - 1] + node.col_offset
        end = offsets[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        return Mutant(path, node.lineno, start, end, content[start:end].decode(), after, function)

    module = str(path.relative_to(SOURCE))
    inner = {
        id(node): (node, module + name)
        for name, body in functions_of(ast.parse(source))
        for one in body.body
        for node in ast.walk(one)
    }
    found = [place(node, after, name) for node, name in inner.values() for node, after in changes(node)]
    return [one for one in found if one.before != one.after and "\n" not in one.before]


def changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """What may stand in a node's place."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPPOSITES:
            yield node, f"({ast.unparse(left)}) {OPPOSITES[type(op)]} ({ast.unparse(right)})"
        case ast.BoolOp(op=op, values=values):
            yield node, "(" + f" {OPPOSITES[type(op)]} ".join(f"({ast.unparse(one)})" for one in values) + ")"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"bool({ast.unparse(operand)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPPOSITES and not is_text(left, right):
            yield node, f"(({ast.unparse(left)}) {OPPOSITES[type(op)]} ({ast.unparse(right)}))"
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


def draw(seed: int, count: int, packages: Sequence[str]) -> list[Mutant]:
    """A package by its weight, then a module by its size, then a place: no file has all of them."""
    chance = random.Random(seed)  # noqa: S311  # a sample that can be drawn again
    known = {
        name: {path: mutants_of(path) for path in sorted((SOURCE / name).rglob("*.py"))} for name in packages
    }
    drawn: dict[str, Mutant] = {}
    while len(drawn) < count:
        name = chance.choices(packages, [WEIGHTS[one] for one in packages])[0]
        paths = [path for path in known[name] if known[name][path]]
        path = chance.choices(paths, [len(known[name][path]) for path in paths])[0]
        one = chance.choice(known[name][path])
        drawn.setdefault(one.text, one)
    return list(drawn.values())


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)


def tests_of(path: Path) -> list[Path]:
    """The tests that mirror the module first, then those beside them that import it."""
    folder = ROOT / "tests" / path.relative_to(SOURCE).parts[0]
    mirror = folder / f"test_{path.stem}.py"
    others = [one for one in importing(path, folder) if one != mirror]
    return [*([mirror] if mirror.exists() else []), *others][:MOST_FILES]


def importing(path: Path, folder: Path) -> list[Path]:
    """The tests in a folder that import the module."""
    module = module_of(path)
    return [one for one in sorted(folder.rglob("test_*.py")) if module in one.read_text()]


class Calls:
    """Which tests call a function, and what each takes, by what is kept of the test files."""

    def __init__(self) -> None:
        self._tests: dict[str, dict[str, float]] = {}
        self._known: set[Path] = set()
        for path in sorted((ROOT / "tests").rglob("test_*.py")):
            if (place := kept(path)).exists():
                self._known.add(path)
                self._add(json.loads(place.read_text()))
            elif (before := kept_before(path)) is not None:
                self._add(json.loads(before.read_text()), functions_in(path))

    def _add(self, touched: Touched, still_there: Collection[str] | None = None) -> None:
        """Of a test file that has changed, functions that are still there, whatever their parameters are now."""
        for test, (seconds, called) in touched["tests"].items():
            whole = test.partition("[")[0]
            if still_there is not None and whole.rpartition("::")[2] not in still_there:
                continue
            for number in called:
                tests = self._tests.setdefault(touched["functions"][number], {})
                if still_there is None:
                    tests[test] = seconds
                else:
                    tests[whole] = tests.get(whole, 0.0) + seconds

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests that can notice it, in the order in which they are run, file by file."""
        near = tests_of(mutant.path)
        whole = [path for path in near if path not in self._known]
        found = dict.fromkeys(map(name_of, whole))
        calling, left = self._tests.get(mutant.function, {}), MOST_SECONDS
        mirrors = {*map(name_of, near)}
        for test in sorted(calling, key=lambda one: (one.partition("::")[0] not in mirrors, calling[one])):
            if calling[test] <= left and test.partition("::")[0] not in found:
                left -= calling[test]
                found[test] = None
        if len(found) - len(whole) <= FEW_TESTS:
            anywhere = [path for path in importing(mutant.path, ROOT / "tests") if path not in self._known]
            found |= dict.fromkeys(map(name_of, anywhere[:MOST_FILES]))
        files = {
            name: place for place, name in reversed([*enumerate(one.partition("::")[0] for one in found)])
        }
        return sorted(found, key=lambda one: files[one.partition("::")[0]])


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions_in(path: Path) -> set[str]:
    return {name.rpartition(".")[2] for name, _ in functions_of(ast.parse(path.read_text()))}


def outcome_of(mutant: Mutant, tests: list[str]) -> Outcome:
    """Runs the tests over the mutant."""
    whole = mutant.path.read_bytes()
    changed = whole[: mutant.start] + mutant.after.encode() + whole[mutant.end :]
    words = f"{sys.executable} -m pytest -x -q -n 0 -p no:cacheprovider -m".split()
    limited = ["sh", "-c", f'ulimit -t {BUSIEST}; exec "$@"', "sh", *words, "not torture", *tests]
    try:
        mutant.path.write_bytes(changed)
        with subprocess.Popen(
            limited, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        ) as run:
            try:
                said = run.communicate(timeout=LONGEST)[0].decode(errors="replace")
            except subprocess.TimeoutExpired:
                return "hung"
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(run.pid, signal.SIGKILL)
    finally:
        mutant.path.write_bytes(whole)
    named: dict[int, Outcome] = {
        0: "SURVIVED",
        1: "killed",
        2: "killed",
        -signal.SIGXCPU: "hung",
        -signal.SIGKILL: "hung",
    }
    if run.returncode == NOT_FOUND and UNCOLLECTED in said:
        return "killed"
    if run.returncode not in named:
        print(said[-2000:], file=sys.stderr)
    return named.get(run.returncode, "not run")


def end(_signal: int, _frame: FrameType | None) -> None:
    """A file that is changed is put back first."""
    sys.exit(143)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--count", type=int, default=40)
    options.add_argument("--packages", default=",".join(WEIGHTS), help="draw from these alone")
    options.add_argument("--minutes", type=float, default=8.0, help="begin no further one after that")
    options.add_argument(
        "--part", default="1/1", help="K/N: every N-th one, from the K-th on: for N checkouts at once"
    )
    options.add_argument("--list", action="store_true", help="say which ones, and run nothing")
    given = options.parse_args()
    packages = given.packages.split(",")
    sample = draw(given.seed, given.count, packages)
    if given.list:
        print(*(one.text for one in sample), sep="\n")
        return 0
    if not is_clean():
        sys.exit("src has changes that are not committed: mutants are written over it")
    signal.signal(signal.SIGTERM, end)
    some = "" if given.packages == ",".join(WEIGHTS) else f"-{'-'.join(packages)}"
    folder = CACHE / f"sample-{given.seed}-{given.count}{some}"
    folder.mkdir(parents=True, exist_ok=True)
    part, parts = map(int, given.part.split("/"))
    places = {one: folder / str(number) for number, one in enumerate(sample, start=1)}
    run_sample(dict([*places.items()][part - 1 :: parts]), time.monotonic() + 60 * given.minutes)
    outcomes = [place.read_text() for place in places.values() if place.exists()]
    killed, live = sum(one in ("killed", "hung") for one in outcomes), len(outcomes)
    left = len(sample) - live
    print(f"{killed} of {live} killed ({killed / max(1, live):.0%}), seed {given.seed}, {left} left")
    return 0


def run_sample(places: Mapping[Mutant, Path], stop: float) -> None:
    """Runs those mutants that have no outcome yet, until the time is over."""
    calls = Calls()
    for mutant, place in places.items():
        if not place.exists() and time.monotonic() < stop:
            tests = calls.tests(mutant)
            outcome = outcome_of(mutant, tests) if tests else "no tests"
            place.write_text(outcome)
            print(f"{place.name:>3} {outcome:8} {mutant.text} ({len(tests)} tests)", flush=True)


if __name__ == "__main__":
    sys.exit(main())
