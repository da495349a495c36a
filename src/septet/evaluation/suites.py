"""Suites of tasks with hidden tests, as data: what is asked, what the folder holds, and what the result must pass.

Forms that are read: our own JSONL (`id`, `goal`, `files`, `tests`, `entry`), HumanEval's (`prompt`, `test`,
`entry_point`), EvalPlus's (`canonical_solution` with `base_input` and `plus_input`), MBPP's (`test_list`), and folders
(`folders.py`).
"""

import ast
import gzip
import json
import random
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import msgspec

from septet.common.temporary import temporary_folder
from septet.common.values import Value
from septet.errors import BadUsage

MODULE = "solution"
"""What hidden tests import, where a task is about a function: the file that defines it is found."""


class EvalTask(Value):
    """One task. `tests` are hidden from whoever solves it; `entry` is the function that it is about."""

    id: str
    goal: str
    tests: Mapping[str, str]
    files: Mapping[str, str] = {}
    entry: str = ""
    solution: str = ""
    """A right program, where one is known: nobody is shown it."""
    targets: tuple[str, ...] = ()
    """The tests that decide; without any, all of them."""


CASES = """\
import json, types
import pytest
from {name} import {name}

CASES = json.loads({cases!r})

def plain(value):
    return [plain(one) for one in value] if isinstance(value, (list, tuple, types.GeneratorType)) else value

@pytest.mark.parametrize("arguments, wanted", CASES)
def test_hidden(arguments, wanted):
    found = plain({name}(*(arguments if isinstance(arguments, list) else [arguments])))
    assert found == (pytest.approx(wanted) if isinstance(wanted, float) else wanted)
"""


class RepositoryTask(msgspec.Struct):
    """`task.json` of a task about a repository: SWE-bench's words, and an archive instead of a network."""

    problem_statement: str
    archive: str
    """A file beside it: an sdist, another tar file, or a git bundle."""
    fail_to_pass: list[str] = msgspec.field(name="FAIL_TO_PASS")
    pass_to_pass: list[str] = msgspec.field(name="PASS_TO_PASS", default_factory=list[str])
    test_patch: str = ""
    base_commit: str = ""


def read_folders(root: Path) -> list[EvalTask]:
    """The tasks of a folder, in whatever layout it has."""
    if (root / "python_programs").is_dir():
        return [*broken_programs(root)]
    tasks = [task for one in sorted(root.iterdir()) if one.is_dir() for task in read_eval_tasks(one)]
    if not tasks:
        raise BadUsage(f"{root} holds no tasks", "docs/evaluation.md shows the layouts that are read")
    return tasks


def read_eval_tasks(folder: Path) -> Iterator[EvalTask]:
    if (folder / "goal.md").is_file():
        yield own_task(folder)
    elif (folder / ".docs" / "instructions.md").is_file():
        yield from exercise(folder)
    elif (folder / "task.json").is_file():
        yield repository_task(folder)


def own_task(folder: Path) -> EvalTask:
    tests, given = folder_texts(folder / "tests"), folder_texts(folder / "files")
    if not tests:
        raise BadUsage(f"{folder} has no tests", "put the hidden tests into its folder tests/")
    goal = (folder / "goal.md").read_text().strip()
    return EvalTask(id=folder.name, goal=goal, tests=tests, files=given)


def exercise(folder: Path) -> Iterator[EvalTask]:
    """Instructions, a stub of the solution, and tests. Those without Python tests are left out."""
    tests = {path.name: path.read_text() for path in sorted(folder.glob("*_test.py"))}
    stubs = {path.name: path.read_text() for path in sorted(folder.glob("*.py")) if path.name not in tests}
    if not tests or not stubs:
        return
    names = ("introduction.md", "instructions.md", "instructions.append.md")
    words = [path.read_text().strip() for name in names if (path := folder / ".docs" / name).is_file()]
    goal = "\n\n".join([*words, f"Write it into {', '.join(stubs)}, which is there as a stub."])
    example = folder / ".meta" / "example.py"
    solution = example.read_text() if example.is_file() else ""
    yield EvalTask(id=folder.name, goal=goal, tests=tests, files=stubs, solution=solution)


def broken_programs(root: Path) -> Iterator[EvalTask]:
    """Programs with one defect each, and cases as JSON: `[arguments, result]` a line."""
    for cases in sorted((root / "json_testcases").glob("*.json")):
        program = root / "python_programs" / f"{cases.stem}.py"
        if not program.is_file():
            continue
        rows = [json.loads(line) for line in cases.read_text().splitlines() if line.strip()]
        test = CASES.format(name=cases.stem, cases=json.dumps(rows))
        right = root / "correct_python_programs" / program.name
        yield EvalTask(
            id=cases.stem,
            goal=f"{program.name} has a defect: {cases.stem} does not do what its description says. Mend it.",
            tests={"test_hidden.py": test},
            files={program.name: program.read_text()},
            solution=right.read_text() if right.is_file() else "",
        )


def repository_task(folder: Path) -> EvalTask:
    """The repository's texts at its commit; hidden are the tests as they are with the patch for them."""
    try:
        task = msgspec.json.decode((folder / "task.json").read_bytes(), type=RepositoryTask)
        with temporary_folder("suite") as place:
            root = unpack(folder / task.archive, place, task.base_commit)
            given = folder_texts(root)
            if task.test_patch:
                git(root, "apply", "--whitespace=nowarn", "-", text=task.test_patch)
            patched = folder_texts(root)
    except (msgspec.MsgspecError, OSError, tarfile.TarError, subprocess.CalledProcessError) as error:
        raise BadUsage(f"{folder} cannot be read ({error})", "docs/evaluation.md shows its form") from error
    targets = (*task.fail_to_pass, *task.pass_to_pass)
    tests = {path: text for path, text in patched.items() if given.get(path) != text}
    tests |= {path: patched[path] for path in {one.partition("::")[0] for one in targets} if path in patched}
    return EvalTask(id=folder.name, goal=task.problem_statement, tests=tests, files=given, targets=targets)


def unpack(archive: Path, place: Path, commit: str) -> Path:
    """The folder that holds what was packed."""
    if archive.name.endswith(".bundle"):
        git(place, "clone", "-q", str(archive.absolute()), "bundle")
        git(place / "bundle", "checkout", "-q", commit or "HEAD")
        return place / "bundle"
    with tarfile.open(archive) as packed:
        packed.extractall(place, filter="data")
    inside = [*place.iterdir()]
    root = inside[0] if len(inside) == 1 and inside[0].is_dir() else place
    git(root, "init", "-q")
    return root


def git(folder: Path, *words: str, text: str = "") -> None:
    subprocess.run(["git", "-C", str(folder), *words], input=text, text=True, check=True, capture_output=True)


def folder_texts(folder: Path) -> dict[str, str]:
    """Its texts by their paths; what is none of the project's own, or no text, is left out."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_symlink() or not path.is_file() or not {"__pycache__", ".git"}.isdisjoint(inside.parts):
            continue
        try:
            found[inside.as_posix()] = path.read_text()
        except UnicodeDecodeError:
            continue
    return found


BUNDLED = {"small": "small.jsonl"}


class Row(msgspec.Struct):
    """A line of any of the forms."""

    id: str = ""
    task_id: str | int = ""
    goal: str = ""
    prompt: str = ""
    text: str = ""
    files: dict[str, str] = {}
    tests: dict[str, str] = {}
    entry: str = ""
    entry_point: str = ""
    solution: str = ""
    canonical_solution: str = ""
    test: str = ""
    test_list: list[str] = []
    test_setup_code: str = ""
    base_input: list[object] = []
    plus_input: list[object] | dict[str, object] = []
    atol: float = 0.0
    assertion: str = ""


def read_suite(name: str) -> list[EvalTask]:
    """A bundled suite by its name, or a file or folder of the person's."""
    path = Path(name)
    if name in BUNDLED and not path.exists():
        return read_lines(files("septet.evaluation").joinpath(BUNDLED[name]).read_text(), name)
    if path.is_dir():
        return read_folders(path)
    if not path.is_file():
        raise BadUsage(
            f"'{name}' is not a suite",
            f"name a .jsonl file, a folder of tasks, or one of {', '.join(BUNDLED)}",
        )
    data = path.read_bytes()
    text = (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode()
    return read_lines(text, name)


def read_lines(text: str, name: str) -> list[EvalTask]:
    tasks: list[EvalTask] = []
    for number, line in enumerate(filter(str.strip, text.splitlines()), start=1):
        try:
            tasks.append(task_from_row(msgspec.convert(json.loads(line), Row)))  # EvalPlus writes Infinity
        except (msgspec.MsgspecError, ValueError) as error:
            raise BadUsage(f"{name}, line {number}: {error}", "docs/evaluation.md shows the forms") from error
    if len({one.id for one in tasks}) != len(tasks):
        raise BadUsage(f"{name}: two tasks have the same id", "give each its own")
    return tasks


def task_from_row(row: Row) -> EvalTask:
    """Raises ValueError for a row that has no goal or no tests."""
    goal = row.goal or row.prompt.strip().strip('"').strip() or row.text
    entry = row.entry or row.entry_point
    tests = row.tests or hidden_tests(row, entry)
    identity = row.id or str(row.task_id)
    if not identity or not goal or not tests:
        raise ValueError("a task needs an id, a goal and tests")
    solution = row.solution or (row.prompt if row.test else "") + row.canonical_solution
    return EvalTask(id=identity, goal=goal, tests=tests, files=row.files, entry=entry, solution=solution)


def hidden_tests(row: Row, entry: str) -> dict[str, str]:
    """The tests of a foreign form as a test file of ours."""
    if row.base_input:
        return {"test_hidden.py": compared_with_solution(row, entry)}
    head = f"from {MODULE} import *\n"
    if row.test:
        check = f"def test_hidden():\n    check({entry})\n"
        return {"test_hidden.py": f"{head}from {MODULE} import {entry}\n{row.test}\n\n{check}"}
    if row.test_list:
        asserts = "\n".join(f"    {line}" for one in row.test_list for line in one.splitlines())
        return {"test_hidden.py": f"{head}{row.test_setup_code}\n\ndef test_hidden():\n{asserts}\n"}
    return {}


COMPARISON = """\
import ast, copy, json, re
import {module}

CANONICAL = {solution!r}
INPUTS = json.loads({inputs!r})
ASSERTION = {assertion!r}
ENTRY = {entry!r}
KINDS = (list, tuple, set, frozenset, dict)
COMPLEX = re.compile(r"\\(?[-+\\d.e]+j\\)?")

def is_asked(node):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == ENTRY

def shown_arguments():
    # The arguments as the suite's own assertion writes them: JSON has no tuples, sets and complex numbers.
    for node in ast.walk(ast.parse(ASSERTION)):
        if is_asked(node):
            return [eval(compile(ast.Expression(one), "assertion", "eval"), {{}}) for one in node.args]
    return []

def shaped(value, shown):
    if isinstance(value, str) and isinstance(shown, (int, float, complex)) and COMPLEX.fullmatch(value):
        return complex(value)
    if isinstance(value, dict) and isinstance(shown, dict) and shown:
        first = next(iter(shown.values()))
        return {{key: shaped(one, first) for key, one in value.items()}}
    if not isinstance(value, list) or not isinstance(shown, KINDS):
        return value
    nested = [one for one in shown if isinstance(one, KINDS)] if not isinstance(shown, dict) else []
    items = [shaped(one, nested[0] if nested else shown) for one in value]
    return dict(items) if isinstance(shown, dict) else type(shown)(items)

def view():
    # What the assertion compares: sets of what is returned, or whether it is true at all, or else the very value.
    if ENTRY in {sets!r}:
        return set
    for node in ast.walk(ast.parse(ASSERTION)):
        if isinstance(node, ast.Assert):
            test = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
            if is_asked(test):
                return bool
            sides = [test.left, *test.comparators] if isinstance(test, ast.Compare) else []
            named = [one.func.id for one in sides if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)]
            return set if "set" in named and len(sides) == 2 else lambda value: value
    return lambda value: value

def same(one, other):
    if isinstance(one, float) or isinstance(other, float):
        try:
            return one == other or abs(one - other) <= max({atol!r}, 1e-6 * abs(other))
        except TypeError:
            return False
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other

def test_hidden():
    space = {{}}
    exec(CANONICAL, space)
    seen, shown, compared = view(), shown_arguments(), 0
    for given in INPUTS:
        arguments = [shaped(one, other) for one, other in zip(given, shown)] + given[len(shown):]
        try:
            wanted = seen(space[ENTRY](*copy.deepcopy(arguments)))
        except Exception:  # an input that the right program cannot take
            continue
        compared += 1
        assert same(seen(getattr({module}, ENTRY)(*copy.deepcopy(arguments))), wanted)
    assert compared or ASSERTION

def test_assertion():
    exec(ASSERTION, dict(vars({module})))
"""


COMPARED_AS_SETS = """common_in_nested_lists Diff extract_singly find_char_long find_dissimilar intersection_array
larg_nnum similar_elements""".split()
"""Functions of MBPP+ whose results EvalPlus compares as sets, whatever the assertion says."""


def compared_with_solution(row: Row, entry: str) -> str:
    """The result and the right program must agree on every input that the right one can take.

    The assertion in the goal, else the suite's own, says how: its arguments have the types that JSON lacks, and where
    it compares sets, or only whether a result is true, so do the tests.
    """
    inputs = json.dumps([*row.base_input, *row.plus_input])
    solution = (row.prompt if "def " in row.prompt else "") + row.canonical_solution
    imports = [line for line in row.assertion.splitlines() if line.startswith(("import ", "from "))]
    stated = [line for line in row.prompt.splitlines() if line.startswith("assert ")]
    shown = "\n".join([*imports, *stated])
    return COMPARISON.format(
        module=MODULE,
        solution=solution,
        inputs=inputs,
        atol=row.atol,
        entry=entry,
        sets=COMPARED_AS_SETS,
        assertion=shown if stated and is_python(shown) else row.assertion,
    )


def is_python(text: str) -> bool:
    try:
        return bool(ast.parse(text).body)
    except SyntaxError:
        return False


def sample_tasks(tasks: Sequence[EvalTask], count: int | None, seed: int) -> list[EvalTask]:
    """So many of them, the same ones for the same seed, in their order."""
    if count is None or count >= len(tasks):
        return [*tasks]
    places = sorted(random.Random(seed).sample(range(len(tasks)), count))  # noqa: S311  # no secret
    return [tasks[place] for place in places]
