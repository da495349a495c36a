"""Which files belong to the tests."""

import pytest

from septet.domain.files import ANY, FileRef, Layout, WorkspaceDelta, belongs_to_tests, main_of


@pytest.mark.parametrize(
    "path",
    [
        "tests/helpers.py",
        "pkg/testing/factories.py",
        "spec/support/users.rb",
        "specs/data.json",
        "web/src/__tests__/render.js",
        "unit_tests/common.py",
        "e2e/login.ts",
        "Tests/Common.cs",
        "pkg/testdata/golden.txt",
        "conftest.py",
    ],
)
def test_a_helper_in_a_folder_of_tests_counts_as_test_code(path: str) -> None:
    assert belongs_to_tests(path)


@pytest.mark.parametrize(
    "path", ["src/spec.py", "contest/main.py", "latest/x.py", "src/tests.md", "specification/a.py"]
)
def test_a_name_that_only_looks_like_it_does_not(path: str) -> None:
    assert not belongs_to_tests(path)


@pytest.mark.parametrize(
    ("paths", "run", "main"),
    [
        (["notes.txt", "test_a.py", "b.py", "a.py"], "", "b.py"),
        (["b.py", "main.py"], "", "main.py"),
        (["b.py", "main.py", "c.py"], "python c.py 1", "c.py"),
        (["main.js", "b.py"], "", "main.js"),
        (["a.js", "b.py"], "", "b.py"),
        (["a.kt"], "", "a.kt"),
        (["test_a.py", "notes.txt"], "", ""),
    ],
)
def test_the_file_that_starts_the_program_is_the_named_one_or_main_or_the_first_that_runs(
    paths: list[str], run: str, main: str
) -> None:
    found = main_of([FileRef(path=path, sha256="", size=0) for path in paths], run, {".kt": "kotlinc"})
    assert (found.path if found else "") == main


def test_a_file_is_replaced_if_it_is_not_there_or_as_the_team_expects_it() -> None:
    layout = Layout(replaceable={"a.py": ("1",), "b.py": (ANY,)})
    assert [layout.may_replace("a.py", digest) for digest in ("", "1", "2")] == [True, True, False]
    assert layout.may_replace("b.py", "2")
    assert not layout.may_replace("c.py", "1")
    assert Layout().may_replace("c.py", "1"), "all may be replaced"


def test_a_change_of_a_base_names_what_it_writes_and_deletes() -> None:
    written = FileRef(path="a.py", sha256="", size=0)
    assert WorkspaceDelta(files=(written,), deleted=("b.py",), leftovers=("c",)).paths == {"a.py", "b.py"}
