"""Actions: context in, context out; exact results, refusals with reasons, and nothing evaluated."""

import json
from collections.abc import Generator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.json import encode
from tools.projects import apply, files, project

from septet.domain.plans import Refusal
from septet.errors import BadConfig
from septet.team.context import Context
from septet.tools import registry
from septet.tools.actions import file_actions
from septet.tools.registry import action, known_tools, read_arguments, tool_of_function
from septet.workspace.changes import Change, prepare_change, wishes

pytestmark = pytest.mark.anyio
BUILTIN = {one.name: one for one in file_actions()}
A = "one\ntwo\nthree\n"

TABLE: list[tuple[str, dict[str, object], dict[str, str], dict[str, str]]] = [
    ("create", {"code": "x = 1\n"}, {}, {"main.py": "x = 1\n"}),
    ("create", {"code": "x\n", "test_code": "t\n"}, {}, {"main.py": "x\n", "test_main.py": "t\n"}),
    (
        "create_new_file",
        {"path": "pkg/b.py", "code": "b\n", "test_code": "t\n"},
        {"main_py": A},
        {"main.py": A, "pkg/b.py": "b\n", "pkg/test_b.py": "t\n"},
    ),
    ("write_code", {"path": "main.py", "code": "new\n"}, {"main_py": A}, {"main.py": "new\n"}),
    ("write_code", {"path": "b.py", "code": "b\n"}, {"main_py": A}, {"b.py": "b\n", "main.py": A}),
    ("delete_file", {"path": "b.py"}, {"main_py": A, "b_py": "b"}, {"main.py": A}),
    (
        "insert_code",
        {"path": "main.py", "line": 2, "code": "x"},
        {"main_py": A},
        {"main.py": "one\nx\ntwo\nthree\n"},
    ),
    (
        "replace_code",
        {"path": "main.py", "start_line": 1, "end_line": 2, "code": "x"},
        {"main_py": A},
        {"main.py": "x\nthree\n"},
    ),
    (
        "remove_code",
        {"path": "main.py", "start_line": "2", "end_line": "2"},
        {"main_py": A},
        {"main.py": "one\nthree\n"},
    ),
    (
        "edit_text",
        {"path": "main.py", "old": "two", "new": "2"},
        {"main_py": A},
        {"main.py": "one\n2\nthree\n"},
    ),
]
REFUSED: list[tuple[str, dict[str, object], str]] = [
    ("create", {"code": "x"}, "exists already"),
    ("create_new_file", {"path": "main.py", "code": "x"}, "exists already"),
    ("delete_file", {"path": "main.py"}, "cannot be deleted"),
    ("delete_file", {"path": "none.py"}, "there is no 'none.py'; the files are main.py"),
    ("insert_code", {"path": "main.py", "line": 9, "code": "x"}, "not in 1 to 4"),
    ("insert_code", {"path": "main.py", "line": "many", "code": "x"}, "line"),
    ("insert_code", {"path": "main.py", "line": 1}, "missing required field `code`"),
    ("write_code", {"path": "main.py", "code": "x", "mode": "w"}, "unknown field `mode`"),
    ("write_code", {"path": ["main.py"], "code": "x"}, "Expected `str`"),
    ("edit_text", {"path": "main.py", "old": "four", "new": "4"}, "does not stand there"),
    ("edit_text", {"path": "b.py", "old": "four", "new": "4"}, "there is no 'b.py'; the files are main.py"),
    ("create_new_file", {"path": "../b.py", "code": "x"}, "'../b.py'"),
]
ESCAPES = [
    "../a.py",
    "/etc/passwd",
    "a/../../b.py",
    "~/a.py",
    "",
    ".",
    "a//b.py",
    "a\\..\\b.py",
    "C:\\a.py",
    "a\0.py",
    "nul",
    "pkg/COM1.py",
    "aux.py",
    "a.py.",
    "a.py ",
    "MAIN.py",
    ".git/hooks/pre-commit",
    ".GIT/config",
    "x" * 300,
    "a\ud800.py",
]


@pytest.mark.parametrize(("name", "arguments", "before", "after"), TABLE)
async def test_an_action_does_exactly_this(
    name: str, arguments: dict[str, object], before: dict[str, str], after: dict[str, str]
) -> None:
    assert await apply(BUILTIN[name], project(**before), encode(arguments).decode()) == after


@pytest.mark.parametrize(("name", "arguments", "reason"), REFUSED)
async def test_an_action_is_refused_with_a_reason(
    name: str, arguments: dict[str, object], reason: str
) -> None:
    result = await apply(BUILTIN[name], project(main_py=A), encode(arguments).decode())
    assert isinstance(result, Refusal)
    assert reason in result.reason


@pytest.mark.parametrize("path", ESCAPES)
async def test_no_path_leads_out_of_the_project(path: str) -> None:
    context = project(main_py=A)
    for name in ("write_code", "create_new_file"):
        arguments = json.dumps({"path": path, "code": "x = 1\n"})
        assert isinstance(await apply(BUILTIN[name], context, arguments), Refusal)
    refused = await prepare_change(files(context), {path: "x = 1\n"})
    assert isinstance(refused, Refusal)


async def test_what_does_not_parse_is_not_written() -> None:
    context = project(main_py="x = 1\n", b_py="y = 1\n")
    after = context.with_file("main.py", "x = 2\n").with_file("b.py", "def f(:\n")
    refused = await prepare_change(files(context), wishes(context, after))
    assert isinstance(refused, Refusal)
    assert "nothing was written, for b.py, line 1: SyntaxError" in refused.reason


async def test_a_change_comes_back_formatted_and_as_a_diff() -> None:
    context = project(main_py="x = 1\n", b_py="y = 1\n")
    after = context.with_file("main.py", "x=2\n").without_file("b.py")
    change = await prepare_change(files(context), wishes(context, after), own={"main.py"})
    assert isinstance(change, Change)
    assert change.texts == {"b.py": None, "main.py": "x = 2\n"}
    assert "--- a/b.py\n+++ /dev/null\n" in change.diff
    assert "-x = 1\n+x = 2\n" in change.diff


async def test_a_body_that_was_left_out_before_may_stay() -> None:
    before = "def f(): ...\n\n\nx = 1\n"
    change = await prepare_change({"a.py": before}, {"a.py": before.replace("1", "2")}, own=None)
    assert isinstance(change, Change)
    assert isinstance(await prepare_change({"a.py": "x = 1\n"}, {"a.py": before}), Refusal)


async def test_a_change_that_changes_nothing_is_none() -> None:
    change = await prepare_change({"main.py": "x = 1\n"}, {"main.py": "x  =  1\n"}, own={"main.py"})
    assert change == Change(texts={}, diff="")


async def test_what_the_team_has_not_written_keeps_its_looks() -> None:
    change = await prepare_change(
        {"main.py": "x=1\ny =  2\n"}, {"main.py": "x=3\ny =  2\n", "new.py": "z=1\n"}
    )
    assert isinstance(change, Change)
    assert change.texts == {"main.py": "x=3\ny =  2\n", "new.py": "z = 1\n"}


@pytest.fixture
def registered() -> Generator[None]:
    yield
    registry.REGISTERED.clear()


@pytest.mark.usefixtures("registered")
async def test_people_add_their_own() -> None:
    @action
    def shout(context: Context, loudness: int = 1) -> Context:
        """Make everything upper case."""
        return context.with_file("main.py", (context.file("main.py") or "").upper() + "!" * loudness)

    @action(repeatable=False)
    async def pay(context: Context) -> Context:
        """Costs money."""
        raise ValueError("no funds")

    known = known_tools(file_actions())
    assert {"shout", "pay", "create"} <= known.keys()
    assert known["pay"].repeatable is False
    assert await apply(known["shout"], project(main_py="a"), '{"loudness": 2}') == {"main.py": "A!!"}
    failed = await apply(known["pay"], project(), "{}")
    assert failed == Refusal(reason="pay failed: ValueError: no funds")
    offer = known["shout"].offer()
    assert offer.description == "Make everything upper case."
    assert offer.parameters["required"] == []


def test_an_action_says_what_it_does() -> None:
    def silent(context: Context) -> Context:
        return context

    with pytest.raises(BadConfig, match="no docstring"):
        tool_of_function(silent)


def test_offers_are_json_schemas() -> None:
    offer = BUILTIN["insert_code"].offer({"reasoning": {"type": "string"}})
    assert offer.parameters["required"] == ["reasoning", "path", "line", "code"]
    properties = offer.parameters["properties"]
    assert isinstance(properties, dict)
    assert properties["line"] == {"type": "integer", "description": "Counted from 1"}


@given(st.text(max_size=80))
def test_arguments_are_read_and_never_run(text: str) -> None:
    assert isinstance(read_arguments(text), dict | Refusal)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.sampled_from(sorted(BUILTIN)),
    st.dictionaries(st.sampled_from(["path", "code", "line", "old", "x"]), JSON),
)
async def test_any_arguments_get_an_answer(name: str, arguments: dict[str, object]) -> None:
    assert isinstance(
        await apply(BUILTIN[name], project(main_py=A), encode(arguments).decode()), dict | Refusal
    )
