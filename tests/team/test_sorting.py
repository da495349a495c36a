"""A small model's reply sorted into a module and its tests."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.domain.plans import Refusal
from septet.team.goal_examples import stated_examples
from septet.team.sorting import (
    MAX_MERGED_CHUNKS,
    is_prose,
    parse_pieces,
    read_reply,
    sorted_files,
    with_text,
)

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
        fenced(
            f"import pytest\n{MODULE}\n{test}\nif __name__ == '__main__':\n    # show it\n    print(double(2))"
        )
    )
    assert "parametrize" in found["test_double.py"]
    assert "import pytest" in found["test_double.py"]
    assert "if __name__ == '__main__':\n    # show it\n    print(double(2))" in found["double.py"]
    assert "pytest" not in found["double.py"]


def test_a_test_that_was_cut_off_ends_with_its_last_whole_line() -> None:
    found = files(f"```python\n{MODULE}\n\n{TEST}\n    assert double(3) == 6\n    assert dou")
    assert found["test_double.py"].rstrip().endswith("assert double(3) == 6")
    assert works(found)


@pytest.mark.parametrize(
    "call",
    [
        "test_double()",
        "pytest.main()",
        "if __name__ == '__main__':\n    unittest.main()",
        "assert double(1) == 2",
    ],
)
def test_calls_of_tests_do_not_stay_behind_in_the_module(call: str) -> None:
    found = files(fenced(f"{MODULE}\n\n{TEST}\n\n{call}"))
    assert found["double.py"] == f"{MODULE}\n"
    assert works(found)


def test_bare_asserts_become_tests() -> None:
    found = files(fenced(f"{MODULE}\n\nvalue = 3\nassert double(value) == 6\nassert double(0) == 0"))
    assert "assert" not in found["double.py"]
    assert found["test_double.py"].count("def test_stated_") == 2
    assert "value = 3" in found["test_double.py"]


def test_where_no_tests_came_what_the_goal_states_is_tested() -> None:
    found = sorted_files(
        fenced(MODULE), "double.py", "test_double.py", ["double"], stated_examples("double(2) == 4")
    )
    assert not isinstance(found, Refusal)
    assert found[1].text == ("from double import *\n\n\ndef test_stated_1():\n    assert double(2) == 4\n")


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("def f(x: List[int]) -> Optional[int]:\n    return x[0]", "from typing import List"),
        ("def f(x):\n    return math.floor(x)", "import math"),
        ("def f(x):\n    return Counter(x)", "from collections import Counter"),
        ("def f(x):\n    return datetime.now()", "from datetime import datetime"),
        ("def f(x):\n    return datetime.date.today()", "import datetime"),
        ("from __future__ import annotations\ndef f(x: List):\n    return re.sub('a', '', x)", "import re"),
    ],
)
def test_imports_that_were_forgotten_are_added(code: str, line: str) -> None:
    module = read_reply(fenced(code), ["f"]).module
    assert line in module.splitlines()
    exec(compile(module, "f", "exec"), {"__name__": "f"})


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("import os, your_module", False),
        ("import your_module, os", False),
        ("import os, json", True),
        ("import os, numpy", True),
        ("import os, double", False),
    ],
)
def test_an_import_that_names_the_module_itself_goes_and_what_it_named_besides_is_imported_anew(
    line: str, kept: bool
) -> None:
    reply = fenced(f"{line}\n\n{MODULE} + len(os.sep) - 1", f"{line}\n\n{TEST}")
    found = files(reply)
    assert (line in found["double.py"].splitlines()) is kept
    assert ("import os" in found["double.py"].splitlines()) is not kept
    assert "your_module" not in found["double.py"] + found["test_double.py"]


def test_names_that_are_bound_anywhere_are_not_imported() -> None:
    code = "def f(List, math=None):\n    for re in List:\n        copy = re\n    return copy, math"
    assert read_reply(fenced(code), ["f"]).module == f"{code}\n"


READABLE = [
    "def f(x):\n    return x\n```",
    "def f(x):\n    return x\n```\nThis gives back what it was given.",
    "def f(x):\n    return x\n",
    "```\ndef f(x):\n    return x\n",
    "Sure\n\n    def f(x):\n        return x\n",
    "```python\nclass Solution:\n    def f(self, x):\n        return x\n```",
    "```python\ndef F(x):\n    return x\n```",
    "```python\ndef other(x):\n    return x\n```",
    ">>> def f(x):\n...     return x\n>>> f(2)\n2",
    "```python\ndef f(x):\n    return x\n\nassert f(2) == 2\nassert f(3) ==",
    "```python\nfrom solution import f\n\ndef f(x):\n    '''\na text\nwith lines\n'''\n    return x\n```",
    "```python\nf = lambda x: x\n```",
    "```python\nfrom f import f\ndef f(x):\n    return x\nprint(f(2))\n```\nOutput:\n```\n2\n```",
    "```python\ndef f(x):\n    return x\n```python\ndef test_f():\n    assert f(1) == 1\n```",
    "```python\ndef f(x):\n    pass\n```\nor\n```python\ndef f(x):\n    return x\n```",
    "```python\nLIMIT = 0\ndef f(x):\n    return x + LIMIT\nprint(f(LIMIT))\n```",
    "```python\nname = 'x'\ndef g(name):\n    return name\nf = g\n```",
]


@pytest.mark.parametrize("reply", READABLE)
def test_any_form_of_a_program_is_read(reply: str) -> None:
    space: dict[str, object] = {"__name__": "x"}
    exec(read_reply(reply, ["f"], "f").module, space)
    function = space["f"]
    assert callable(function)
    assert function(2) == 2


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        ("", "empty"),
        ("I cannot do that.", "no code"),
        ("```python\ndef f(x):\n    return (x +\n", "not Python"),
        ("```python\nprint(2)\n```", "no definition"),
        ("```python\ndef g(x):\n    return x\ndef h(x):\n    return x\n```", "wrong name"),
    ],
)
def test_the_cause_of_an_unreadable_reply_is_named(reply: str, cause: str) -> None:
    assert read_reply(reply, ["f"]).cause == cause
    assert isinstance(sorted_files(reply, "f.py", "test_f.py", ["f"], stated_examples("f(1) == 1")), Refusal)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("```python\ndef double(n):\n    if n", "cut off"),
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


def test_what_only_acts_is_done_when_the_program_is_started() -> None:
    module = read_reply(fenced("def main(name):\n    return name\nname = input()\nprint(main(name))")).module
    assert module == (
        "def main(name):\n    return name\n\n\n"
        "if __name__ == '__main__':\n    name = input()\n    print(main(name))\n"
    )


@given(reply=st.text(alphabet="`python\n defts_()=:#1", max_size=200))
def test_any_reply_is_two_files_of_python_or_a_reason(reply: str) -> None:
    found = sorted_files(reply, "a.py", "test_a.py")
    if isinstance(found, Refusal):
        assert found.reason
    else:
        for file in found:
            ast.parse(file.text)


@pytest.mark.parametrize(
    ("source", "prose"),
    [
        ("Sure", True),
        ("a, b", True),
        ("Example: usage", False),
        ("Example: Usage", True),
        ("count: int", False),
        ("Count: Int = 1", False),
        ("x = 1", False),
        ("f()", False),
    ],
)
def test_words_that_happen_to_be_python_are_told_from_code(source: str, prose: bool) -> None:
    (node,) = ast.parse(source).body
    assert is_prose(node) is prose


def test_each_statement_has_its_own_lines_and_the_comments_above_it() -> None:
    source = "# first\na = 1\n\n# second\n@mark\ndef b():\n    # inside\n    return 1\nc = 2; d = 3\ne = 4"
    assert [text for _, text in with_text(source, ast.parse(source).body)] == [
        "# first\na = 1",
        "# second\n@mark\ndef b():\n    # inside\n    return 1",
        "c = 2",
        "d = 3",
        "e = 4",
    ]


def test_only_values_that_bare_asserts_use_go_into_the_test_file() -> None:
    found = files(fenced("def two(x):\n    return 2 * x\n\n\nn = 4\nm = 5\nprint(n)\nassert two(2) == n\n"))
    (test,) = [text for path, text in found.items() if path.startswith("test_")]
    assert "n = 4" in test
    assert "m = 5" not in test
    assert "print(n)" not in test


def test_asserts_below_the_block_are_tests() -> None:
    below = "Tests:\nassert f(1) == 2\nassert correctness\nassert that it is right\n"
    reply = fenced("def f(n):\n    return n + 1") + f"\n{below}"
    assert read_reply(reply, ("f",)).asserts == ("f(1) == 2",)


def test_asserts_in_a_loop_are_a_test() -> None:
    reply = "def f(n):\n    return n + 1\nfor a, b in [(1, 2), (2, 3)]:\n    assert f(a) == b\n"
    read = read_reply(reply, ("f",), "plus")
    assert "for" not in read.module
    assert "    for a, b in [(1, 2), (2, 3)]:\n        assert f(a) == b" in read.tests


def test_a_wanted_function_that_is_called_like_a_test_is_none(tmp_path: Path) -> None:
    reply = "def test_prime(n):\n    return n > 1\n\nassert test_prime(3)\n"
    files = sorted_files(reply, "prime.py", "test_prime_py.py", ("test_prime",))
    assert not isinstance(files, Refusal)
    for file in files:
        (tmp_path / file.path).write_text(file.text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "1 passed" in ran.stdout.splitlines()[-1]


@pytest.mark.parametrize(("pieces", "whole"), [(MAX_MERGED_CHUNKS, True), (MAX_MERGED_CHUNKS + 1, False)])
def test_a_text_in_quotes_is_read_up_to_so_many_lines_that_look_like_statements(
    pieces: int, whole: bool
) -> None:
    lines = ["x = '''", *["Some words."] * (pieces - 2), "'''"]
    found, _ = parse_pieces("\n".join(["this is no code", *lines]))
    assert [text for _, text in found] == (["\n".join(lines)] if whole else [])
