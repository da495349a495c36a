"""The hollow program keeps what can be named and loses what works."""

import ast
from pathlib import Path

import pytest

from septet.team.controls import (
    Constants,
    Operators,
    empty_functions,
    mutate,
    other_results,
    prints_text,
    tampering,
    transformed_sources,
)


def names(source: str) -> set[str]:
    space: dict[str, object] = {}
    exec(source, space)
    return {name for name in space if not name.startswith("__")}


def test_functions_keep_their_signatures_and_lose_their_bodies() -> None:
    source = (
        '"""Adds."""\nLIMIT = 3\n\n\ndef add(a: int, b: int = 2) -> int:\n    """Sum."""\n    return a + b\n'
    )
    left = empty_functions(source)
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
    left = empty_functions(source)
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
    left = empty_functions(
        "import sys\nNAME = 'x'\nprint(f'hello {NAME}', file=sys.stdout)\nfor i in range(3):\n    print(i)\n"
    )
    assert left == "import sys\nNAME = 'x'\n"


@pytest.mark.parametrize("source", ["", "X = 1\n", "def f(:\n", "def later():\n    ...\n"])
def test_where_nothing_can_be_taken_away_there_is_no_hollow_program(source: str) -> None:
    assert empty_functions(source) is None


def test_results_are_others_of_their_type_and_never_the_same_twice_but_only_for_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = (
        '"""Doc."""\nfrom __future__ import annotations\n'
        "def add(a, b):\n    return a + b\n"
        "def twice(n):\n    return add(n, n)\n"
        "def name():\n    return 'x'\n"
        "def is_odd(n):\n    return n % 2 == 1\n"
        "def items():\n    return [1, 2]\n"
        "def nothing():\n    return\n"
    )
    changed = other_results(source)
    assert changed is not None
    space = execed(changed)

    def seen(call: str, file: str) -> object:
        return eval(compile(call, file, "eval"), space)

    assert seen("twice(2)", "app.py") == 4
    sums = [seen("twice(2)", "tests/test_app.py") for _ in range(2)]
    assert all(isinstance(one, int) and one != 4 for one in sums)
    assert sums[0] != sums[1]
    assert isinstance(seen("name()", "test_app.py"), str)
    assert seen("name()", "test_app.py") != "x"
    assert seen("is_odd(3)", "test_app.py") is False
    assert seen("items()", "test_app.py") not in ([1, 2], [])
    assert seen("nothing()", "test_app.py") is None
    assert type(seen("twice(None)", "test_app.py")) is object, "an exception is a result too"
    with pytest.raises(TypeError):
        seen("twice(None)", "app.py")


def test_operators_and_constants_change_in_functions_once_and_declarations_stay() -> None:
    source = (
        "LIMIT = 3 + 4\n"
        "def f(a: int | None = 1) -> str | None:\n"
        '    """Doc."""\n'
        "    x: int | None = a\n"
        "    def inner(b):\n        return b + 1\n"
        "    if x:\n        return f'{inner(a):.2f} cm'\n"
        "    return 'no' if a == 2 else None\n"
    )
    operators, constants = mutate(source, Operators()), mutate(source, Constants())
    assert operators is not None
    assert constants is not None
    for text in (operators, constants):
        assert "LIMIT = 3 + 4" in text
        assert "def f(a: int | None=1) -> str | None:" in text
        assert '"""Doc."""' in text
        assert "x: int | None = a" in text
        assert ":.2f" in text
    assert "return b - 1" in operators
    assert "if not x:" in operators
    assert "a != 2" in operators
    assert "return b + 2" in constants
    assert "!bl" in constants


def test_where_nothing_changes_there_is_no_mutant() -> None:
    source = "def f(a):\n    a.go()\n"
    assert other_results("X = 1\n") is None
    assert mutate(source, Operators()) is None
    assert transformed_sources({"a.py": source, "b.txt": "x"}, "hollow") == {"a.py": "def f(a):\n    pass\n"}


APP = "import app\n\n\ndef test_it():\n    assert app.f() == 1\n"
HONEST_FILES: list[dict[str, str]] = [
    {"app.py": "def f():\n    return 1\n", "test_app.py": APP},
    {"app.py": '"""Run pytest."""\nimport subprocess\nsubprocess.run(["python", "-m", "pytest"])\n'},
    {"app.py": "print('use pytest, and not PYTEST_ADDOPTS')\n"},
    {"app.py": "def f():\n    return 1\n", "conftest.py": "import app\n\napp.DATA = 'x.csv'\n"},
    {
        "test_app.py": "import app\n\n\ndef test_it(monkeypatch):\n    monkeypatch.setattr(app, 'f', lambda: 1)\n"
    },
    {"test_app.py": "import json\n\njson.dumps = lambda value: ''\n"},
    {"app.py": "def f(:\n"},
    {"app.py": "import sys\n\ntry:\n    import numpy\nexcept ImportError:\n    X = 'numpy' in sys.modules\n"},
    {"app.py": "import sys\nX = sys.modules['__main__']\nY = sys.modules[__name__]\n"},
]


@pytest.mark.parametrize("files", HONEST_FILES)
def test_honest_files_do_not_look_like_tampering(files: dict[str, str]) -> None:
    assert tampering(files) == ""


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("app.py", "import sys\n\nX = 'pytest' in sys.modules\n", "app.py:3 asks whether it is being tested"),
        ("app.py", "import sys\nX = sys.modules['_pytest']\n", "app.py:2 asks whether it is being tested"),
        (
            "app.py",
            "import os\nX = os.getenv('PYTEST_VERSION')\n",
            "app.py:2 asks whether it is being tested",
        ),
        (
            "app.py",
            "import sys\nX = 'freezegun' in sys.modules\n",
            "app.py:2 asks whether it is being tested",
        ),
        ("app.py", "import sys\nX = sys.modules.get('nose')\n", "app.py:2 asks whether it is being tested"),
        ("conftest.py", "import app as a\na.f = lambda: 1\n", "conftest.py:2 replaces a part of the program"),
        (
            "tests/test_app.py",
            "from pack import app\n\n\ndef g():\n    return 1\n\n\nsetattr(app, 'f', g)\n",
            "tests/test_app.py:8 replaces a part of the program",
        ),
        (
            "hypothesis/__init__.py",
            "",
            "hypothesis/__init__.py hides the library of that name from the tests",
        ),
        ("pytest_mock.py", "", "pytest_mock.py hides the library of that name from the tests"),
    ],
)
def test_tampering_is_named_with_its_line(path: str, text: str, found: str) -> None:
    assert tampering({"pack/app.py": "def f():\n    return 0\n", path: text}) == found


def test_what_the_project_did_before_is_not_held_against_a_change() -> None:
    before = {"app.py": "import os\n\nX = os.getenv('PYTEST_VERSION')\n"}
    assert tampering({"app.py": before["app.py"] + "Y = 1\n"}, before) == ""
    more = before["app.py"] + "Y = 1\nZ = os.getenv('PYTEST_CURRENT_TEST')\n"
    assert tampering({"app.py": more}, before) == "app.py:5 asks whether it is being tested"


def test_a_text_is_written_in_a_program_if_it_is_printed_as_it_is() -> None:
    assert prints_text({"app.py": "print('the sum is 5')\n"}, "5")
    assert prints_text({"app.py": "import sys\nsys.stdout.write('5')\n"}, "5")
    for source in ("print(2 + 3)\n", "print(f'{5}')\n", "x = 5\nprint(x)\n", "input('5')\n"):
        assert not prints_text({"app.py": source}, "5")
    assert not prints_text({"test_app.py": "print(5)\n"}, "5")
