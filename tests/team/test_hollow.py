"""The hollow program keeps what can be named and loses what works."""

import ast

import pytest

from septet.team.hollow import hollow, is_trivial


def names(source: str) -> set[str]:
    space: dict[str, object] = {}
    exec(source, space)
    return {name for name in space if not name.startswith("__")}


def test_functions_keep_their_signatures_and_lose_their_bodies() -> None:
    source = (
        '"""Adds."""\nLIMIT = 3\n\n\ndef add(a: int, b: int = 2) -> int:\n    """Sum."""\n    return a + b\n'
    )
    left = hollow(source)
    assert left is not None
    assert names(left) == names(source)
    space: dict[str, object] = {}
    exec(left, space)
    assert (space["add"](1, b=5), space["LIMIT"]) == (None, 3)  # type: ignore[operator]


def test_methods_and_coroutines_and_generators_stay_what_they_are() -> None:
    source = (
        "class Box:\n    def __init__(self):\n        self.x = 1\n    async def get(self):\n        return self.x\n"
        "def numbers():\n    def inner():\n        yield 1\n    yield from inner()\n"
        "def outer():\n    def inner():\n        yield 1\n    return list(inner())\n"
    )
    left = hollow(source)
    assert left is not None
    tree = ast.parse(left)
    assert "async def get(self):\n        pass" in left
    assert "return 1" not in left
    assert list(eval("numbers()", execed(left))) == []
    assert eval("outer()", execed(left)) is None
    assert isinstance(tree.body[0], ast.ClassDef)


def execed(source: str) -> dict[str, object]:
    space: dict[str, object] = {}
    exec(source, space)
    return space


def test_a_flat_script_loses_its_statements_but_not_its_imports_and_constants() -> None:
    left = hollow(
        "import sys\nNAME = 'x'\nprint(f'hello {NAME}', file=sys.stdout)\nfor i in range(3):\n    print(i)\n"
    )
    assert left == "import sys\nNAME = 'x'\n"


@pytest.mark.parametrize("source", ["", "X = 1\n", "def f(:\n", "def later():\n    ...\n"])
def test_where_nothing_can_be_taken_away_there_is_no_hollow_program(source: str) -> None:
    assert hollow(source) is None


@pytest.mark.parametrize(
    "command",
    [
        "",
        "true",
        "echo 5",
        "python -c pass",
        "python3 -c 'print(5)'",
        "python add.py --help",
        "python -m add --version",
    ],
)
def test_a_command_that_runs_nothing_of_the_program(command: str) -> None:
    assert is_trivial(command, ["add.py", "test_add.py"])


@pytest.mark.parametrize(
    "command",
    [
        "python add.py 2 3",
        "python -c 'import add; assert add.add(2, 3) == 5'",
        "python -m pytest",
        "make check",
        "node add.mjs",
    ],
)
def test_a_command_that_may_run_it(command: str) -> None:
    assert not is_trivial(command, ["add.py", "test_add.py"])
