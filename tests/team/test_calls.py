"""Calls like the plan's examples, and programs compared by them."""

import ast
import contextlib
import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.domain.plans import CommandSucceeds, Plan, Requirement, TestsPass
from septet.team.agreement import MOST, alike, calls_like, driver
from septet.team.small_form import check_of


def plan(*examples: str) -> Plan:
    items = [
        Requirement(id=f"P{number}", text=one, check=check_of("m", one))
        for number, one in enumerate(examples, start=1)
    ]
    return Plan(items=(Requirement(id="P0", text="all", check=TestsPass(target="test_m.py")), *items))


def test_examples_are_varied_one_argument_at_a_time() -> None:
    found = calls_like(plan("pick('ab', 3) == 'b'"))
    assert found[0] == "pick('ab', 3)"
    assert "pick('AB', 3)" in found
    assert "pick('ab', 4)" in found
    assert not any("'AB', 4" in call for call in found)


UNREADABLE = ["echo it's", "python -c 'from m import *; assert f('"]


@pytest.mark.parametrize("command", ["python m.py", "python -c 'print(1)'", "sh -c true", *UNREADABLE])
def test_other_checks_have_no_calls(command: str) -> None:
    item = Requirement(id="P1", text="x", check=CommandSucceeds(command=command))
    assert calls_like(Plan(items=(item,))) == []
    assert calls_like(None) == []


LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3),
)


@given(values=st.lists(LITERALS, min_size=1, max_size=3))
def test_any_example_gives_calls_that_parse(values: list[object]) -> None:
    found = calls_like(plan(f"f({', '.join(map(repr, values))}) == 1"))
    assert 1 <= len(found) <= MOST
    for call in found:
        assert isinstance(ast.parse(call, mode="eval").body, ast.Call)


def test_programs_agree_unless_they_differ_where_both_have_a_result() -> None:
    assert alike(["1", "2", None], ["1", "2", "3"]) == 2
    assert alike(["1", "2"], ["1", "3"]) == 0
    assert alike([None], ["1"]) == 0


def test_the_driver_tells_what_each_module_makes_of_each_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one_of_two.py").write_text("print('noise')\ndef f(n):\n    return n * 2\n")
    (tmp_path / "two_of_two.py").write_text("def f(n):\n    return 4 // n\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(driver(["one_of_two", "two_of_two"], ["f(2)", "f(0)", "g()"]), {})
    assert json.loads(said.getvalue()) == [["4", "0", None], ["2", None, None]]
    for name in ("one_of_two", "two_of_two"):
        del sys.modules[name]
