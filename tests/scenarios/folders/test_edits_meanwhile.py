"""What the person changes in a repository while the team works on its copy, and who says that it may be delivered."""

from pathlib import Path

import pytest
from cli.commands import Septet
from cli.terminals import needs_terminal, on_terminal
from scenarios.folders.chats import (
    ACCEPT,
    FIXED,
    REVISE,
    Turn,
    code,
    fill,
    git,
    plan,
    play,
    repository,
    script,
)

from septet.domain.events import (
    BaseMoved,
    ChatContinued,
    ChatEnded,
    Delivered,
    Event,
    ReviewGiven,
    RunFinished,
    VersionWritten,
)

pytestmark = pytest.mark.anyio
BODY = "".join(f"\n\ndef f{number}():\n    return {number}\n" for number in range(1, 6))
SAY = "def say():\n    return 'bad'\n" + BODY
GOOD = SAY.replace("'bad'", "'good'")
TEST = "from say import say, f5\n\n\ndef test_say():\n    assert say() == 'good'\n\n\ndef test_f5():\n    assert f5()\n"
PLAN = plan("", "tests test_say.py::test_say")
FILES = {
    "say.py": SAY,
    "test_say.py": TEST,
    ".gitignore": "__pycache__/\n.pytest_cache/\n*.db\n",
    "other.txt": "1\n",
}


def steps(*more: Turn) -> list[Turn]:
    wrong = {"say.py": SAY.replace("'bad'", "'worse'")}
    return [PLAN, code(wrong), code(wrong), REVISE, *more]


async def test_edits_are_merged_into_the_work_and_checked_again(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", FILES)
    fill(project, {"people.db": "precious"})
    edited = SAY.replace("return 5", "return 55")

    def edit(event: Event) -> None:
        if isinstance(event, ReviewGiven) and "55" not in (project / "say.py").read_text():
            fill(project, {"say.py": edited, "other.txt": "2\n", "brought.py": "x = 1\n"})

    merged = GOOD.replace("return 5", "return 55")
    turns = steps(REVISE, code({"say.py": merged}, say=FIXED, expect="return 55"), ACCEPT)
    played = await play(tmp_path, script(tmp_path, *turns), "iterate", edit, rounds=4)
    (moved,) = [event for event in played.events if isinstance(event, BaseMoved)]
    assert [one.path for one in moved.changed] == ["brought.py", "other.txt", "say.py"]
    (found,) = played.found
    runs = [event for event in played.events if isinstance(event, RunFinished) and event.tree == found.tree]
    assert {run.purpose for run in runs} >= {"tests"}
    assert played.ended.reason == "done"
    assert (project / "say.py").read_text() == merged
    assert (project / "people.db").read_text() == "precious"
    assert git(project, "status", "--porcelain") == " M other.txt\n M say.py\n?? brought.py\n"


async def test_an_edit_of_the_same_line_is_marked_for_the_coder_and_never_lost(tmp_path: Path) -> None:
    project = repository(tmp_path / "project", FILES)
    mine = SAY.replace("'bad'", "'mine'")

    def edit(event: Event) -> bool:
        if isinstance(event, ReviewGiven):
            fill(project, {"say.py": mine})
        return isinstance(event, VersionWritten) and event.found

    played = await play(tmp_path, script(tmp_path, *steps()), "iterate", edit, rounds=4)
    (found,) = played.found
    assert "not merged: say.py" in found.note
    assert (project / "say.py").read_text() == mine
    assert "'worse'" in (project / "septet-c.patch").read_text()
    assert "<<<<<<< the folder" in (project / "septet-c.patch").read_text()


async def test_an_edit_after_the_last_turn_is_checked_with_the_work_before_it_is_delivered(
    tmp_path: Path,
) -> None:
    project = repository(tmp_path / "project", FILES)
    edited = SAY.replace("return 5", "return 55")

    def edit(event: Event) -> None:
        if isinstance(event, ChatEnded):
            fill(project, {"say.py": edited, "brought.py": "x = 1\n"})

    turns = [PLAN, code({"say.py": GOOD}), code({"say.py": GOOD}), ACCEPT]
    played = await play(tmp_path, script(tmp_path, *turns), "iterate", edit)
    (done,) = [event for event in played.events if isinstance(event, Delivered)]
    assert ([one.how for one in done.files], done.unproven) == (["merged"], ())
    assert (project / "say.py").read_text() == GOOD.replace("return 5", "return 55")
    assert not [event for event in played.events if isinstance(event, ChatContinued)]


@pytest.mark.parametrize(
    "edit",
    [{"say.py": SAY.replace("return 5", "return 0")}, {"test_say.py": TEST + "    assert f5() == 6\n"}],
)
async def test_work_that_fails_together_with_such_an_edit_is_not_done(
    tmp_path: Path, edit: dict[str, str]
) -> None:
    project = repository(tmp_path / "project", FILES)
    broken: list[str] = []

    def work(event: Event) -> bool:
        if isinstance(event, ChatEnded):
            fill(project, edit)
        if isinstance(event, RunFinished) and event.purpose == "tests":
            broken.extend(event.result.report.failed)
        return bool(broken)

    turns = [PLAN, code({"say.py": GOOD}), code({"say.py": GOOD}), ACCEPT]
    played = await play(tmp_path, script(tmp_path, *turns), "iterate", work)
    assert broken == ["test_say.py::test_f5"]
    kinds = [type(event) for event in played.events]
    assert kinds.index(ChatEnded) < kinds.index(ChatContinued) < kinds.index(BaseMoved)
    assert played.found
    assert Delivered not in kinds[: kinds.index(BaseMoved)]


def test_a_choice_of_files_is_checked_again(septet: Septet, tmp_path: Path) -> None:
    project = repository(tmp_path / "project", FILES)
    both = {
        "say.py": GOOD.replace("return 'good'", "return __import__('word').WORD"),
        "word.py": "WORD = 'good'\n",
    }
    model = script(tmp_path, PLAN, code(both), code(both), ACCEPT)
    made = septet("run", "good", "-n", "c", "-C", "project", "-m", model, "--approve", "never")
    made = septet("resume", "c", "sounds good")
    assert made.returncode == 4, made.stderr
    assert "other.txt" in septet("deliver", "c", "other.txt").stderr
    part = septet("deliver", "c", "say.py")
    assert part.returncode == 3, part.stderr
    assert "not proven: P1 is not met" in part.stderr
    assert git(project, "status", "--porcelain") == " M say.py\n"
    rest = septet("deliver", "c", "--yes")
    assert rest.returncode == 0, rest.stderr
    assert git(project, "status", "--porcelain") == " M say.py\n?? word.py\n"


@pytest.mark.torture
def test_without_a_yes_the_difference_is_kept_and_the_exit_code_says_so(
    septet: Septet, tmp_path: Path
) -> None:
    project = repository(tmp_path / "project", FILES)
    model = script(tmp_path, PLAN, code({"say.py": GOOD}), code({"say.py": GOOD}), ACCEPT)
    assert septet("run", "good", "-n", "c", "-C", "project", "-m", model).returncode == 4
    done = septet("resume", "c", "sounds good")
    assert done.returncode == 4, done.stderr
    assert "septet deliver c" in done.stderr
    assert git(project, "status", "--porcelain") == ""
    assert "+    return 'good'\n" in septet("diff", "c").stdout
    assert septet("deliver", "c", "--branch").returncode in (0, 2)  # 2 where git knows no name for the commit
    assert septet("deliver", "c").returncode == 0
    assert git(project, "status", "--porcelain") == " M say.py\n"
    assert septet("resume", "c").returncode == 0


def test_approved_edits_are_delivered_at_the_end(septet: Septet, tmp_path: Path) -> None:
    project = repository(tmp_path / "project", FILES)
    model = script(tmp_path, PLAN, code({"say.py": GOOD}), code({"say.py": GOOD}), ACCEPT)
    done = septet("run", "good", "-n", "c", "-C", "project", "-m", model, "--approve", "edits")
    assert done.returncode == 0, done.stderr
    assert "septet undo c takes that back" in done.stderr
    assert (project / "say.py").read_text() == GOOD


@needs_terminal
def test_at_a_terminal_the_difference_is_shown_and_asked_about(septet: Septet, tmp_path: Path) -> None:
    project = repository(tmp_path / "project", FILES)
    model = script(tmp_path, PLAN, code({"say.py": GOOD}), code({"say.py": GOOD}), ACCEPT)
    run = ("run", "good", "-n", "c", "-C", "project", "-m", model)
    with on_terminal(septet, *run) as terminal:
        terminal.wait_for("1 requirement")
        terminal.type("sounds good")
        terminal.wait_for("septet try c runs the program")
        terminal.type("")
        assert "+    return 'good'" in terminal.wait_for(f"write this to {project}?")
        terminal.type("n")
        assert "exit code 4" in terminal.wait_for("terminal as before")
    assert git(project, "status", "--porcelain") == ""
    with on_terminal(septet, "deliver", "c") as terminal:
        terminal.wait_for(f"write this to {project}?")
        terminal.type("y")
        assert "exit code 0" in terminal.wait_for("terminal as before")
    assert (project / "say.py").read_text() == GOOD
