"""A small model's reply sorted into a module and its tests."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.domain.plans import Refusal
from septet.team.small_form import sorted_files

MODULE = "def double(n):\n    return 2 * n"
TEST = "def test_double():\n    assert double(2) == 4"


def fenced(*blocks: str) -> str:
    return "\n\n".join(f"```python\n{block}\n```" for block in blocks)


def files(reply: str) -> dict[str, str]:
    found = sorted_files(reply, "double.py", "test_double.py")
    assert not isinstance(found, Refusal), found.reason
    return {file.path: file.text for file in found}


def works(found: dict[str, str]) -> bool:
    """The tests pass with the module; its import is what a test run would do."""
    space: dict[str, object] = {}
    exec(found["double.py"], space)
    tests = (
        found["test_double.py"].replace("from double import *", "").replace("from double import double", "")
    )
    exec(tests, space)
    test = space["test_double"]
    assert callable(test)
    test()
    return True


@pytest.mark.parametrize(
    "reply",
    [
        fenced(MODULE, TEST),
        fenced(MODULE, f"from double import double\n\n{TEST}"),
        fenced(MODULE, f"import pytest\nfrom your_module import double\n\n{TEST}"),
        fenced(f"{MODULE}\n\n# tests\n{TEST}"),
        fenced(f"import pytest\n{MODULE}\n\nfrom double import *\n{TEST}"),
        f"Here it is.\n{fenced(MODULE)}\nAnd the tests:\n{fenced(TEST)}\nDone.",
    ],
)
def test_module_and_tests_are_told_apart(reply: str) -> None:
    found = files(reply)
    assert "from double import *" in found["test_double.py"]
    assert "your_module" not in found["test_double.py"]
    assert "def test_" not in found["double.py"]
    assert "double import" not in found["double.py"]
    assert works(found)


def test_decorators_go_with_their_test_and_main_blocks_with_the_module() -> None:
    test = f'@pytest.mark.parametrize("n", [1])\n{TEST.replace("()", "(n)", 1)}'
    found = files(
        fenced(f"import pytest\n{MODULE}\n{test}\nif __name__ == '__main__':\n    print(double(2))")
    )
    assert "parametrize" in found["test_double.py"]
    assert "import pytest" in found["test_double.py"]
    assert "__main__" in found["double.py"]
    assert "pytest" not in found["double.py"]


def test_a_test_that_was_cut_off_ends_with_its_last_whole_line() -> None:
    found = files(f"```python\n{MODULE}\n\n{TEST}\n    assert double(3) == 6\n    assert dou")
    assert found["test_double.py"].rstrip().endswith("assert double(3) == 6")
    assert works(found)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("```python\ndef double(n):\n    if n", "never closed"),
        (fenced(MODULE), "its tests"),
        (fenced(TEST), "the module"),
        (fenced("def double(n:", TEST), "not Python"),
        ("no code at all", "the module"),
    ],
)
def test_what_is_lacking_is_said(reply: str, reason: str) -> None:
    found = sorted_files(reply, "double.py", "test_double.py")
    assert isinstance(found, Refusal)
    assert reason in found.reason


@given(reply=st.text(alphabet="`python\n defts_()=:#1", max_size=200))
def test_any_reply_is_two_files_of_python_or_a_reason(reply: str) -> None:
    found = sorted_files(reply, "a.py", "test_a.py")
    if isinstance(found, Refusal):
        assert found.reason
    else:
        for file in found:
            ast.parse(file.text)
