"""Draws a seeded sample of mutants of our own code, and runs the tests that can notice each one.

python scripts/mutants.py --seed N --count 60                as far as the time goes; again, and it goes on
python scripts/mutants.py --seed N --count 60 --list         say which ones, and run nothing
python scripts/mutants.py --seed N --packages team,chat      of these packages alone

A mutant is one comparison, condition, operator, constant or result changed in place; the file is put back whatever
happens. Files under version control have to be clean. Mutants are drawn where logic decides, by weight. The tests are
those that call the changed function, in whatever process (`scripts/touched.py` keeps which): those that mirror its
module, then those of its package and of all others, of each file in turn the cheapest one, as many as take 10 s of the
processor. Of a test file that has changed since, what was kept of its tests counts as far as they are still there, and
if it is near the module it is run whole, as is one that nothing is kept of; where few tests are known to call the
function, files that import the module anywhere are run as well.

A mutant is killed when a test fails over it that passes without it, and fails over it once more; another test that
fails is left out, and the rest is run. A survivor is a missing test, or a change that makes no difference: look at it.
One whose tests take ten minutes by the clock is `late`: it was not run to the end, and does not count as killed.
Tests run in forks of one process (`scripts/forked.py`); with `--apart` each time in a process of its own, which takes
several times as long, and can only kill more.
"""

import argparse
import ast
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from forked import KILLED, Apart, Outcome, Ran, Runner, file_of, with_forks
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
    "runtime": 1,
    "common": 1,
    "cluster": 1,
    "evaluation": 1,
    "protocols": 1,
    "web": 1,
    "cli": 1,
    "wiring": 1,
}
"""Every package but `demos` and `testing`, which decide nothing for a person."""
REPORT = os.dup(1)
MOST_FILES = 4
"""Tests that mirror a module, and tests beside them that import it: no more files than that, if nothing is kept."""
FEW_TESTS = 5
"""If no more tests are known to call a function, others that may do so are run as well."""
OF_A_TEST = 0.01
"""Seconds that each test takes at least."""


@dataclass(frozen=True)
class Budget:
    """How long the tests over one mutant may take, and what each further file costs besides, which is imported."""

    seconds: float
    of_a_file: float


BUDGETS = (Budget(2.0, 0.3), Budget(10.0, 0.05))
"""Of the processor, as the tests took it when they were recorded: most mutants die of the few tests beside them."""
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

    def tests(self, mutant: Mutant, budget: Budget) -> list[str]:
        """The tests that can notice it, in the order in which they are run, file by file."""
        near = tests_of(mutant.path)
        whole = [path for path in near if path not in self._known]
        found = dict.fromkeys(map(name_of, whole))
        calling, left = self._tests.get(mutant.function, {}), budget.seconds
        begun: set[str] = set()
        for test in in_turn(calling, mutant.path, [*map(name_of, near)]):
            file = file_of(test)
            seconds = max(calling[test], OF_A_TEST) + budget.of_a_file * (file not in begun)
            if seconds <= left and file not in found:
                begun.add(file)
                left -= seconds
                found[test] = None
        if len(found) - len(whole) <= FEW_TESTS:
            anywhere = [path for path in importing(mutant.path, ROOT / "tests") if path not in self._known]
            found |= dict.fromkeys(map(name_of, anywhere[:MOST_FILES]))
        files = {name: place for place, name in reversed([*enumerate(map(file_of, found))])}
        return sorted(found, key=lambda one: files[file_of(one)])


def in_turn(seconds: Mapping[str, float], path: Path, near: Sequence[str]) -> list[str]:
    """The tests of the files beside a module, then those of its package, then the others: each file has equal time."""
    package = f"tests/{path.relative_to(SOURCE).parts[0]}/"
    taken: Counter[str] = Counter()

    def place(test: str) -> tuple[int, float]:
        file = file_of(test)
        taken[file] += max(int(1000 * seconds[test]), 10)
        return (0, near.index(file)) if file in near else (1 + (not file.startswith(package)), taken[file])

    return sorted(sorted(seconds, key=lambda one: seconds[one]), key=place)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions_in(path: Path) -> set[str]:
    return {name.rpartition(".")[2] for name, _ in functions_of(ast.parse(path.read_text()))}


def outcome_of(mutant: Mutant, tests: Sequence[str], runner: Runner) -> Ran:
    """Runs the tests over the mutant, until one fails for it alone."""
    left = [*tests]
    while left:
        with put_in(mutant):
            ran = runner.run(left, mutant.path)
        if ran.outcome not in KILLED:
            return ran
        again = tests_of_failed(ran.failed, left)
        if fails_for(mutant, again, ran.outcome, runner):
            return ran
        say(f"    left out: {ran.failed or ran.outcome}")
        left = [one for one in left if one not in again and one != ran.failed.partition("[")[0]]
    return Ran("SURVIVED")


def tests_of_failed(failed: str, tests: Sequence[str]) -> list[str]:
    """What has to be run once more: a test, those of a file that could not be imported, or all if the run hangs."""
    inside = [one for one in tests if one.startswith(f"{failed}::")]
    return inside or ([failed] if failed else [*tests])


def fails_for(mutant: Mutant, tests: Sequence[str], outcome: Outcome, runner: Runner) -> bool:
    """Whether tests pass without the mutant, and fail over it again; what hangs is not waited for a second time."""
    if runner.run(tests).outcome != "SURVIVED":
        return False
    if outcome == "hung":
        return True
    with put_in(mutant):
        return runner.run(tests, mutant.path).outcome in KILLED


@contextmanager
def put_in(mutant: Mutant) -> Generator[None]:
    """A fork leaves the file to its parent."""
    whole, owner = mutant.path.read_bytes(), os.getpid()
    try:
        write_source(mutant.path, whole[: mutant.start] + mutant.after.encode() + whole[mutant.end :])
        yield
    finally:
        if os.getpid() == owner:
            write_source(mutant.path, whole)


def write_source(path: Path, content: bytes) -> None:
    """Without what was compiled of it before: that counts as its own if it is of the same second and length."""
    path.write_bytes(content)
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink(missing_ok=True)


def end(_signal: int, _frame: FrameType | None) -> None:
    """A file that is changed is put back first."""
    sys.exit(143)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--count", type=int, default=40)
    options.add_argument("--packages", default=",".join(WEIGHTS), help="draw from these alone")
    options.add_argument("--minutes", type=float, default=30.0, help="begin no further one after that")
    options.add_argument(
        "--part", default="1/1", help="K/N: every N-th one, from the K-th on: for N checkouts at once"
    )
    options.add_argument("--apart", action="store_true", help="a process of its own for each run of tests")
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
    chosen = dict([*places.items()][part - 1 :: parts])
    run_sample(chosen, time.monotonic() + 60 * given.minutes, apart=given.apart)
    outcomes = {one: place.read_text() for one, place in places.items() if place.exists()}
    tell(given.seed, outcomes, len(sample) - len(outcomes))
    return 0


def run_sample(places: Mapping[Mutant, Path], stop: float, *, apart: bool) -> None:
    """Runs those mutants that have no outcome yet, until the time is over: all with the nearest tests first."""
    calls = Calls()
    ran: dict[Mutant, set[str]] = {mutant: set() for mutant in places}
    for budget in BUDGETS:
        chosen = {
            mutant: calls.tests(mutant, budget) for mutant, place in places.items() if not place.exists()
        }
        due = {mutant: [one for one in tests if one not in ran[mutant]] for mutant, tests in chosen.items()}

        def run_all(
            runner: Runner, due: Mapping[Mutant, list[str]] = due, last: bool = budget is BUDGETS[-1]
        ) -> None:
            for mutant, tests in due.items():
                if time.monotonic() < stop:
                    run_one(mutant, tests, runner, places[mutant], last=last)
                    ran[mutant].update(tests)

        if apart:
            run_all(Apart(ROOT))
        elif due:
            with_forks(sorted({file_of(test) for tests in due.values() for test in tests}), run_all)


def run_one(mutant: Mutant, tests: Sequence[str], runner: Runner, place: Path, *, last: bool) -> None:
    """Keeps how it ended; that nothing noticed it only after the last of its tests."""
    before = processor_seconds()
    ran = outcome_of(mutant, tests, runner)
    if ran.outcome == "not run":
        ran = outcome_of(mutant, tests, Apart(ROOT))
    if last or ran.outcome in (*KILLED, "late"):
        place.write_text(ran.outcome)
    end = f"by {ran.failed}" if ran.failed else f"{len(tests)} tests"
    outcome = ran.outcome if place.exists() else "open"
    say(f"{place.name:>3} {outcome:8} {mutant.text} ({end}, {processor_seconds() - before:.0f} s)")


def processor_seconds() -> float:
    return sum(os.times()[2:4])


def say(text: str) -> None:
    """Past pytest, which keeps what is printed."""
    os.write(REPORT, f"{text}\n".encode())


def tell(seed: int, outcomes: Mapping[Mutant, str], left: int) -> None:
    """How many were killed, of each package and of all."""

    def line(name: str, some: Collection[str]) -> str:
        killed = sum(one in KILLED for one in some)
        return f"{name}: {killed} of {len(some)} killed ({killed / max(1, len(some)):.0%})"

    packages: dict[str, list[str]] = {}
    for mutant, outcome in outcomes.items():
        packages.setdefault(mutant.path.relative_to(SOURCE).parts[0], []).append(outcome)
    for name, some in sorted(packages.items()):
        print(line(name, some))
    late = sum(one == "late" for one in outcomes.values())
    print(f"{line('all', outcomes.values())}, seed {seed}, {left} left, {late} not run to the end")


if __name__ == "__main__":
    sys.exit(main())
