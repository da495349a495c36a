"""Suites are data: the forms that are read, and the one that comes with Septet."""

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from septet.errors import BadUsage
from septet.evaluation.runs import judged_files
from septet.evaluation.suites import EvalTask, read_suite, sample_tasks


def passes(task: EvalTask, program: str) -> bool:
    """The hidden tests, run here: these programs are ours."""
    module = type("solution", (), {})
    space: dict[str, object] = {}
    exec(program, space)
    for name, value in space.items():
        setattr(module, name, staticmethod(value) if callable(value) else value)
    for text in task.tests.values():
        lines = [
            line for line in text.splitlines() if not line.startswith(("from solution", "import solution"))
        ]
        tests: dict[str, object] = {**space, "solution": module}
        exec("\n".join(lines), tests)
        for name, test in tests.items():
            if name.startswith("test") and callable(test):
                try:
                    test()
                except Exception:
                    return False
    return True


def test_the_bundled_suite_is_solved_by_its_solutions_and_not_by_nothing() -> None:
    tasks = read_suite("small")
    assert len(tasks) >= 12
    for task in tasks:
        assert passes(task, task.solution), task.id
        assert not passes(task, f"def {task.entry}(*_):\n    return None\n"), task.id
        assert task.solution not in task.goal
        assert not any(
            line in task.goal
            for text in task.tests.values()
            for line in text.splitlines()
            if "assert" in line
        )


HUMAN_EVAL = {
    "task_id": "H/1",
    "prompt": 'def inc(n):\n    """Adds one."""\n',
    "entry_point": "inc",
    "canonical_solution": "    return n + 1\n",
    "test": "def check(candidate):\n    assert candidate(1) == 2\n",
}
EVAL_PLUS = {
    "task_id": "M/1",
    "prompt": '"""Adds one.\nassert inc(1) == 2"""',
    "entry_point": "inc",
    "canonical_solution": "def inc(n):\n    return n + 1\n",
    "base_input": [[1], [None]],
    "plus_input": [[2.5], [float("inf")]],
}
MBPP = {"task_id": 7, "text": "Add one: inc(n).", "test_list": ["assert inc(1) == 2", "assert inc(0) == 1"]}
OWN = {
    "id": "o",
    "goal": "inc",
    "tests": {"test_a.py": "from solution import inc\ndef test():\n    assert inc(1) == 2\n"},
}

TWICE = json.dumps(OWN) + "\n" + json.dumps(OWN)


ONLY_TUPLES: dict[str, object] = {
    **EVAL_PLUS,
    "base_input": [[[]]],
    "plus_input": {},
    "assertion": "assert inc(1) == 2",
}


@pytest.mark.parametrize("row", [HUMAN_EVAL, EVAL_PLUS, ONLY_TUPLES, MBPP, OWN])
@pytest.mark.parametrize("packed", [False, True])
def test_each_form_tells_right_from_wrong(tmp_path: Path, row: dict[str, object], packed: bool) -> None:
    data = (json.dumps(row) + "\n").encode()
    path = tmp_path / "suite.jsonl"
    path.write_bytes(gzip.compress(data) if packed else data)
    (task,) = read_suite(str(path))
    assert passes(task, "def inc(n):\n    return n + 1\n")
    assert not passes(task, "def inc(n):\n    return n + 2\n")
    assert "canonical" not in task.goal
    assert not any(text in task.goal for text in task.tests.values())


def test_a_folder_of_folders_is_a_suite(tmp_path: Path) -> None:
    task = tmp_path / "inc"
    (task / "tests").mkdir(parents=True)
    (task / "files" / "pkg").mkdir(parents=True)
    (task / "goal.md").write_text("Mend it.\n")
    (task / "tests" / "test_a.py").write_text("def test(): ...\n")
    (task / "files" / "pkg" / "a.py").write_text("x = 1\n")
    (found,) = read_suite(str(tmp_path))
    assert (found.id, found.goal) == ("inc", "Mend it.")
    assert found.files == {"pkg/a.py": "x = 1\n"}
    assert list(found.tests) == ["test_a.py"]


def test_exercises_are_a_suite(tmp_path: Path) -> None:
    task = tmp_path / "two-fer"
    (task / ".docs").mkdir(parents=True)
    (task / ".meta").mkdir()
    (task / ".docs" / "instructions.md").write_text("Say to whom it is given.\n")
    (task / ".meta" / "example.py").write_text("def two_fer(name='you'):\n    return name\n")
    (task / "two_fer.py").write_text("def two_fer(name):\n    pass\n")
    (task / "two_fer_test.py").write_text("from two_fer import two_fer\n")
    (found,) = read_suite(str(tmp_path))
    assert found.goal.startswith("Say to whom it is given.")
    assert "two_fer.py" in found.goal
    assert list(found.files) == ["two_fer.py"]
    assert list(found.tests) == ["two_fer_test.py"]
    assert "example" not in found.goal
    assert "return name" in found.solution


@pytest.mark.parametrize("missing", ["two_fer.py", "two_fer_test.py"])
def test_an_exercise_without_a_stub_or_without_tests_is_left_out(tmp_path: Path, missing: str) -> None:
    for name in ("bob", "two_fer"):
        (tmp_path / name / ".docs").mkdir(parents=True)
        for file in (".docs/instructions.md", f"{name}.py", f"{name}_test.py"):
            (tmp_path / name / file).write_text("text\n")
    (tmp_path / "two_fer" / missing).unlink()
    assert [one.id for one in read_suite(str(tmp_path))] == ["bob"]


def test_an_exercise_is_asked_for_with_all_that_is_said_of_it(tmp_path: Path) -> None:
    task = tmp_path / "bob"
    (task / ".docs").mkdir(parents=True)
    for name in ("introduction.md", "instructions.md", "instructions.append.md"):
        (task / ".docs" / name).write_text(f"{name}\n")
    for name in ("bob.py", "more.py", "bob_test.py"):
        (task / name).write_text("")
    (found,) = read_suite(str(tmp_path))
    assert found.goal == (
        "introduction.md\n\ninstructions.md\n\ninstructions.append.md\n\n"
        "Write it into bob.py, more.py, which is there as a stub."
    )
    assert found.solution == ""


def test_a_task_of_ones_own_needs_tests_and_holds_texts_alone(tmp_path: Path) -> None:
    task = tmp_path / "own"
    for folder in ("tests", "files/__pycache__", "files/.git"):
        (task / folder).mkdir(parents=True)
        (task / folder / "a.py").write_text("a")
    (task / "goal.md").write_text("Mend it.\n")
    (task / "files" / "picture.png").write_bytes(b"\xff\xfe")
    (task / "files" / "link.py").symlink_to("b.py")
    (task / "files" / "b.py").write_text("b")
    (found,) = read_suite(str(tmp_path))
    assert found.files == {"b.py": "b"}
    (task / "tests" / "a.py").unlink()
    with pytest.raises(BadUsage, match=f"{task} has no tests"):
        read_suite(str(tmp_path))


def write_broken_program(root: Path) -> None:
    for name, text in {
        "python_programs/inc.py": 'def inc(n):\n    return n\n\n\n"""\nAdds one.\n"""\n',
        "correct_python_programs/inc.py": "def inc(n):\n    return n + 1\n",
        "json_testcases/inc.json": "[[1], 2]\n[[-1], 0]\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_broken_programs_are_a_suite(tmp_path: Path) -> None:
    write_broken_program(tmp_path)
    (found,) = read_suite(str(tmp_path))
    assert (found.id, list(found.files)) == ("inc", ["inc.py"])
    assert "Mend it" in found.goal
    assert "n + 1" in found.solution


SDIST = {"pkg/__init__.py": "def inc(n):\n    return n\n", "tests/test_old.py": "def test_old(): ...\n"}
PATCH = """\
--- /dev/null
+++ b/tests/test_new.py
@@ -0,0 +1,4 @@
+from pkg import inc
+
+def test_inc():
+    assert inc(1) == 2
"""


def write_repository_task(root: Path) -> None:
    folder = root / "pkg-1"
    folder.mkdir(parents=True)
    with tarfile.open(folder / "pkg.tar.gz", "w:gz") as packed:
        for name, text in SDIST.items():
            member = tarfile.TarInfo(f"pkg-1.0/{name}")
            member.size = len(text)
            packed.addfile(member, io.BytesIO(text.encode()))
    task = {
        "problem_statement": "inc does not add one.",
        "archive": "pkg.tar.gz",
        "test_patch": PATCH,
        "FAIL_TO_PASS": ["tests/test_new.py::test_inc"],
        "PASS_TO_PASS": ["tests/test_old.py::test_old"],
    }
    (folder / "task.json").write_text(json.dumps(task))


def test_a_repository_with_a_failing_test_is_a_task(tmp_path: Path) -> None:
    write_repository_task(tmp_path)
    (found,) = read_suite(str(tmp_path))
    assert found.files == SDIST
    assert set(found.tests) == {"tests/test_new.py", "tests/test_old.py"}
    assert found.targets == ("tests/test_new.py::test_inc", "tests/test_old.py::test_old")
    (tmp_path / "pkg-1" / "task.json").write_text("{}")
    with pytest.raises(BadUsage, match="pkg-1"):
        read_suite(str(tmp_path))


def test_a_folder_without_tasks_is_no_suite(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="holds no tasks"):
        read_suite(str(tmp_path))


@pytest.mark.parametrize(
    "text",
    ["{", '{"id": "a", "goal": "b"}', '{"goal": "b", "tests": {"t": ""}}', TWICE],
)
def test_what_is_no_suite_is_said_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "suite.jsonl"
    path.write_text(text)
    with pytest.raises(BadUsage, match=r"suite\.jsonl"):
        read_suite(str(path))
    with pytest.raises(BadUsage, match="not a suite"):
        read_suite(str(tmp_path / "none.jsonl"))


def test_the_same_seed_chooses_the_same_tasks() -> None:
    tasks = read_suite("small")
    assert sample_tasks(tasks, 4, 7) == sample_tasks(tasks, 4, 7)
    assert sample_tasks(tasks, 4, 7) != sample_tasks(tasks, 4, 8)
    assert sample_tasks(tasks, None, 7) == sample_tasks(tasks, 99, 1) == tasks


def test_tests_and_settings_of_the_result_do_not_judge_it() -> None:
    task = EvalTask(id="t", goal="g", tests={"test_hidden.py": ""}, entry="inc", files={"test_given.py": ""})
    code = "def inc(n):\n    return n\n"
    own = {"adder.py": code, "test_adder.py": "", "conftest.py": "", "pytest.ini": "", "test_given.py": ""}
    assert judged_files(task, own) == {"adder.py": code, "test_given.py": "", "solution.py": code}


def row(prompt: str, solution: str, inputs: list[object]) -> dict[str, object]:
    return {
        **EVAL_PLUS,
        "prompt": f'"""Do it.\n{prompt}\n"""',
        "canonical_solution": solution,
        "base_input": inputs,
        "plus_input": {},
        "assertion": "assert inc(1) == 0",
    }


TUPLES = row(
    "assert inc((1, (2, 3))) == 1",
    "def inc(n):\n    return sum(not isinstance(one, tuple) for one in n)\n",
    [[[1, [2, 3]]], [[1, 2, [3, [4]]]]],
)
SETS = row("assert set(inc([1])) == set((1,))", "def inc(n):\n    return (*n,)\n", [[[1, 2]]])
TRUTH = row("assert not inc('a')", "import re\ndef inc(n):\n    return re.search('b', n)\n", [["ab"], ["a"]])
COMPLEX = row("assert inc(1j) == 1", "def inc(n):\n    return abs(n)\n", [["(3+4j)"], ["2j"]])


@pytest.mark.parametrize(
    ("given", "right", "wrong"),
    [
        (TUPLES, "return len([x for x in n if type(x) is not tuple])", "return len(n)"),
        (SETS, "return list(n)[::-1]", "return [0]"),
        (TRUTH, "return 'b' in n", "return True"),
        (COMPLEX, "return (n.real ** 2 + n.imag ** 2) ** 0.5", "return n.real"),
    ],
)
def test_results_are_compared_as_the_assertion_in_the_goal_says(
    tmp_path: Path, given: dict[str, object], right: str, wrong: str
) -> None:
    path = tmp_path / "suite.jsonl"
    path.write_text(json.dumps(given) + "\n")
    (task,) = read_suite(str(path))
    assert passes(task, f"def inc(n):\n    {right}\n")
    assert not passes(task, f"def inc(n):\n    {wrong}\n")


def test_some_functions_of_mbpp_are_compared_as_sets_whatever_the_assertion_says(tmp_path: Path) -> None:
    given = {**row("", "def Diff(n):\n    return [1, 2]\n", [[0]]), "entry_point": "Diff", "assertion": ""}
    path = tmp_path / "suite.jsonl"
    path.write_text(json.dumps(given) + "\n")
    (task,) = read_suite(str(path))
    assert passes(task, "def Diff(n):\n    return [2, 1]\n")
    assert not passes(task, "def Diff(n):\n    return [2]\n")
