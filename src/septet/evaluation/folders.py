"""Suites that are folders: our own, exercises (Exercism's layout), broken programs (QuixBugs' layout), and
repositories with a failing test.
"""

import json
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from septet.common.temporary import temporary_folder
from septet.errors import BadUsage
from septet.evaluation.tasks import EvalTask

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
    tasks = [task for one in sorted(root.iterdir()) if one.is_dir() for task in read_task(one)]
    if not tasks:
        raise BadUsage(f"{root} holds no tasks", "docs/evaluation.md shows the layouts that are read")
    return tasks


def read_task(folder: Path) -> Iterator[EvalTask]:
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
