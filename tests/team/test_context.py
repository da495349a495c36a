"""The context object: its keys, of the right types, at each stage; prompts filled with them."""

import msgspec
import pytest
from msgspec.structs import replace
from team.states import GREEN, RED, chat, planned, ran, version

from septet.domain.events import DecisionRecorded, RunFinished, SnapshotTaken
from septet.domain.files import FileChange
from septet.domain.runs import RunResult
from septet.errors import BadUsage
from septet.team.context import (
    ACTING,
    INITIAL,
    REASONED,
    SMALL_PROJECT,
    ActionOffer,
    Context,
    compose_prompt,
    context_of,
    main_text,
)

SOURCES = {"add.py": "def add(a, b):\n    return a + b\n", "test_add.py": "x = 1\n", "pkg/b.py": "def f(:\n"}
FAULTS = {"pkg/b.py": "pkg/b.py, line 1: SyntaxError"}
FILE_KEYS = {
    *("rel_path", "file_path", "content", "validation_success", "validation_error"),
    *("test_success", "test_error", "test_output"),
}


def context(green: bool) -> Context:
    taken = SnapshotTaken(number=1, manifest="abc", entries=3)
    found = DecisionRecorded(by="runner", what="something", why="because", case="unmet")
    state = chat([*planned(), *version(1, "a"), *ran(1, "a", green=green), taken, found])
    return context_of(state, SOURCES, FAULTS, [ActionOffer(name="create", description="Creates.")])


def test_each_stage_has_the_seeds_keys() -> None:
    assert set(context(True).at("initial")) == {"epoch", "name", "goal", "project_dir", "project_path"}
    assert set(context(True).at("reasoned")) - set(INITIAL) == {
        *("reasoning", "file_count", "filetree", "filetree_formatted", "python_files", "main_success"),
        *("main_error", "backup", "project_code", "project_code_formatted"),
    }
    assert set(context(True).at()) - set(REASONED) == {
        "available_actions",
        "available_action_names",
        "action_name",
    }


def test_values_have_their_types_and_can_be_written_as_json() -> None:
    seen = msgspec.json.decode(msgspec.json.encode(context(True).at()), type=dict[str, object])
    assert set(seen) == set(ACTING)
    assert (seen["epoch"], seen["goal"], seen["file_count"]) == (1, "add numbers", 3)
    assert seen["filetree"] == ["add.py", "pkg/b.py", "test_add.py"]
    assert seen["filetree_formatted"] == "add.py\npkg/\n  b.py\ntest_add.py"
    assert seen["python_files"] == ["add.py", "pkg/b.py", "test_add.py"]
    assert (seen["main_success"], seen["main_error"], seen["backup"]) == (True, None, "abc")
    assert seen["reasoning"] == "something: because"
    files = msgspec.convert(seen["project_code"], list[dict[str, object]])
    assert [set(file) for file in files] == [FILE_KEYS] * 3


@pytest.mark.parametrize("green", [True, False])
def test_a_file_knows_its_validation_and_its_tests(green: bool) -> None:
    code, broken, test = context(green).project_code
    assert (broken.validation_success, broken.validation_error) == (False, FAULTS["pkg/b.py"])
    assert (code.validation_success, code.test_success, test.test_success) == (True, green, green)
    assert test.test_output == (GREEN if green else RED)
    assert test.test_error == (None if green else "test_add.py::test_sum")
    assert broken.test_success is None


def test_prompts_are_filled_and_a_missing_key_is_an_error() -> None:
    made = context(True)
    assert compose_prompt("{{goal}} / {{ epoch }} / {{project_name}}", made) == "add numbers / 1 / c"
    assert compose_prompt("{{available_action_names}}", made) == '["create"]'
    assert compose_prompt("{{x}} {not} {{{{", {"x": "{{goal}}"}) == "{{goal}} {not} {{{{"
    for template in ("{{goals}}", "{{__class__}}", "{{at}}"):
        with pytest.raises(BadUsage, match="which the context does not have"):
            compose_prompt(template, made)


def test_a_context_is_changed_by_making_another_one() -> None:
    before = context(True)
    after = before.with_file("new.py", "x\n").without_file("add.py")
    assert before.file("new.py") is None
    assert (after.file("new.py"), after.file("add.py")) == ("x\n", None)


def test_every_line_of_a_file_is_shown_with_its_number_and_what_is_known_of_it() -> None:
    sources = {
        "add.py": "def add(a, b):\n    return a + b\n",
        "notes.txt": "one\n\ntwo",
        "pkg/b.py": "def f(:\n",
        "test_add.py": "",
    }
    state = chat([*planned(), *version(1, "a"), *ran(1, "a", green=False)])
    assert context_of(state, sources, FAULTS).project_code_formatted == (
        "## add.py\nvalidation: ok\ntests: FAIL (test_add.py::test_sum)\n"
        "```\n   1| def add(a, b):\n   2|     return a + b\n```\n\n"
        "## notes.txt\n```\n   1| one\n   2| \n   3| two\n```\n\n"
        "## pkg/b.py\nvalidation: pkg/b.py, line 1: SyntaxError\n```\n   1| def f(:\n```\n\n"
        "## test_add.py\nvalidation: ok\ntests: FAIL (test_add.py::test_sum)\n```\n   1| \n```\n\n"
        "`run`: succeeded\n2"
    )


@pytest.mark.parametrize(("size", "is_whole"), [(SMALL_PROJECT, True), (SMALL_PROJECT + 1, False)])
def test_a_project_is_small_up_to_its_limit(size: int, is_whole: bool) -> None:
    sources = {"a.py": "x" * (size - 1), "b.py": "y"}
    shown = context_of(chat(planned()), sources, {}).project_code_formatted
    assert ("## b.py" in shown) is is_whole
    assert ("2 more files are not shown here" in shown) is not is_whole


def test_of_a_large_project_the_code_is_shown_that_the_situation_is_about() -> None:
    filler = "x = 1\n" * 4_000
    sources = {
        "pkg/deep/near.py": "import pkg.deep.far\n",
        "pkg/deep/far.py": "def far(): ...\n",
        "pkg/deep/test_it.py": "from pkg.deep.near import it\n",
        "docs/notes.md": "pkg.deep.near is near\n",
        **{f"pkg/other{number}.py": filler for number in range(4)},
    }
    state = replace(chat(planned()), goal="pkg/deep/test_it.py::test_it fails")
    shown = context_of(state, sources, {}).project_code_formatted
    assert "## pkg/deep/test_it.py" in shown
    assert "## pkg/deep/near.py" in shown
    assert "## pkg/deep/far.py" not in shown
    assert "## pkg/other0.py" not in shown
    assert "## docs/notes.md" not in shown
    assert "6 more files are not shown here" in shown
    told = replace(state, goal="what docs/notes.md says of src/pkg/other1.py")
    assert "## docs/notes.md" in context_of(told, sources, {}).project_code_formatted
    assert "## pkg/other1.py" in context_of(told, sources, {}).project_code_formatted
    small = {path: text for path, text in sources.items() if text != filler}
    assert "## pkg/deep/far.py" in context_of(state, small, {}).project_code_formatted


def test_what_the_program_did_is_told_with_its_mode_its_end_and_what_it_left() -> None:
    changes = (FileChange(path="a.png", kind="new", size=1), FileChange(path="b", kind="deleted", size=2))
    ended = RunResult(exit_code=0, stdout="5\n", changes=changes)
    main = RunFinished(id="r", purpose="run", command="python a.py", tree="", result=ended)
    assert main_text(main) == "`python a.py`: succeeded\n5\nit left a.png (1 byte)"
    shown = replace(main, mode="screen", result=replace(ended, stdout="", changes=()))
    assert main_text(shown) == "`python a.py` on a screen: succeeded"
    assert main_text(replace(shown, mode="server")) == "`python a.py` as a server: succeeded"
