"""What is shown to less than it seems: answers in each other's input, echoes, scripts and files by the coder's hand."""

import pytest
from msgspec.structs import replace
from team.states import STARTED, chat

from septet.domain.events import Event, PlanProposed, RunFinished, VersionWritten
from septet.domain.files import FileChange, FileRef, tree_of
from septet.domain.plans import (
    Check,
    CommandSucceeds,
    FileExists,
    PictureExists,
    Plan,
    Requirement,
    TestsPass,
)
from septet.domain.runs import Purpose, RunResult
from septet.domain.state import State
from septet.team.caveats import echoed_items, is_data, mistaken_items, scripted_items, written_files


def after(
    checks: list[Check], files: tuple[str, ...] = (), *runs: RunFinished, run: str = "", text: str = ""
) -> State:
    """A chat whose newest version has these files; each requirement has a text of its own unless one is given."""
    items = tuple(
        Requirement(id=f"P{number}", text=text or f"wish {number}", check=check)
        for number, check in enumerate(checks, start=1)
    )
    refs = tuple(FileRef(path=path, sha256=path, size=1) for path in files)
    written = VersionWritten(number=1, files=refs, tree=tree_of(refs))
    events: list[Event] = [STARTED, PlanProposed(plan=Plan(items=items, run=run)), written]
    return chat([*events, *(replace(one, tree=written.tree) for one in runs)])


def ran(purpose: Purpose, about: str = "", stdout: str = "", *made: str) -> RunFinished:
    changes = tuple(FileChange(path=path, kind="new", sha256=path, size=1) for path in made)
    result = RunResult(exit_code=0, stdout=stdout, changes=changes)
    return RunFinished(
        id=f"{purpose} {about}", purpose=purpose, about=about, command="c", tree="", result=result
    )


def command(words: str, prints: str = "") -> CommandSucceeds:
    return CommandSucceeds(command=words, prints=prints)


@pytest.mark.parametrize(
    ("check", "files", "run", "scripted"),
    [
        (command("python show.py", "ok"), ("app.py", "show.py"), "python app.py", True),
        (command("python ./show.py"), ("app.py", "show.py"), "python app.py", True),
        (command("python app.py", "ok"), ("app.py", "show.py"), "python app.py", False),
        (command("python show.py 2"), ("app.py", "show.py"), "python app.py", False),
        (command("python other.py"), ("app.py", "show.py"), "python app.py", False),
        (command("python test_app.py"), ("app.py", "test_app.py"), "python app.py", False),
        (command("python -m show"), ("app.py", "show.py"), "python app.py", True),
        (command("python -m show"), ("app.py", "show/__main__.py"), "python app.py", True),
        (command("python -m app"), ("app.py", "show.py"), "python app.py", False),
        (command("make"), ("app.py", "Makefile"), "python app.py", True),
        (command("python make"), ("app.py", "Makefile"), "python app.py", False),
        (FileExists(path="show.py"), ("app.py", "show.py"), "python app.py", False),
    ],
)
def test_a_command_that_starts_another_file_than_the_program_with_no_input_is_noticed(
    check: Check, files: tuple[str, ...], run: str, scripted: bool
) -> None:
    assert scripted_items(after([check], files, run=run)) == (["P1"] if scripted else [])


@pytest.mark.parametrize(
    ("check", "runs", "noticed"),
    [
        (FileExists(path="out.csv"), [ran("run")], True),
        (FileExists(path="out.csv"), [], False),
        (FileExists(path="out.csv"), [ran("tests")], False),
        (FileExists(path="out.csv"), [ran("run", "", "", "out.csv")], False),
        (FileExists(path="notes.md"), [ran("run")], False),
        (FileExists(path="else.csv"), [ran("run")], False),
        (PictureExists(path="plot.png"), [], True),
        (PictureExists(path="plot.png"), [ran("run", "", "", "plot.png")], False),
        (TestsPass(target="out.csv"), [ran("run")], False),
    ],
)
def test_what_a_program_should_make_and_only_the_coder_wrote_is_noticed(
    check: Check, runs: list[RunFinished], noticed: bool
) -> None:
    state = after([check], ("app.py", "out.csv", "notes.md", "plot.png"), *runs)
    assert written_files(state) == (["P1"] if noticed else [])


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("a/out.json", True),
        ("out.tar.csv", True),
        ("page.html", False),
        ("app.py", False),
        ("requirements.txt", False),
        ("a/requirements-dev.txt", False),
        ("LICENSE.txt", False),
    ],
)
def test_what_people_seldom_write_by_hand_is_data(path: str, data: bool) -> None:
    assert is_data(path) is data


def test_a_requirement_is_an_echo_if_each_of_its_checks_looks_for_its_own_input() -> None:
    echo, real = command("python app.py hello", "hello"), command("python app.py hello", "olleh")
    assert echoed_items(after([echo, real])) == ["P1"]
    assert echoed_items(after([echo, real], text="it greets")) == [], "another check shows it"
    assert echoed_items(after([echo, echo], text="it greets")) == ["P1", "P2"]
    assert echoed_items(after([echo, FileExists(path="x")], text="it greets")) == []


def test_a_text_that_is_printed_for_the_input_of_another_check_too_is_noticed() -> None:
    checks: list[Check] = [command("python app.py 2", "4"), command("python app.py 3", "9")]
    apart = [ran("check", "P1", "4\n"), ran("check", "P2", "9\n")]
    assert mistaken_items(after(checks, ("app.py",), *apart)) == []
    both = [ran("check", "P1", "4 9\n"), ran("check", "P2", "4 9\n")]
    assert mistaken_items(after(checks, ("app.py",), *both)) == ["P1", "P2"]
    assert mistaken_items(after(checks, ("app.py",))) == [], "nothing has run"
