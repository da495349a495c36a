"""Which files belong to the tests."""

import pytest

from septet.domain.files import belongs_to_tests


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
