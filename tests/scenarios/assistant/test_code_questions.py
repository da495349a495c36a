"""Questions about a project: read with tools, answered with references that are looked up, nothing left behind."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from cli.commands import Septet
from msgspec.structs import replace
from scenarios.assistant.scripts import Turn, calls, execute, file, says, send, write
from scenarios.autocoder.playing import home_in

from septet.domain.events import AnswerGiven, Event, ReplyRefused, ToolAnswered, VersionWritten
from septet.stores.blobs import FolderBlobs
from septet.ways.assistant.policy import answer_words
from septet.ways.table import TEAMS
from septet.wiring.session import open_session, with_model

pytestmark = pytest.mark.anyio
ASKED = "Where is the retry policy decided?"
FILES = {
    "net/retry.py": "LIMIT = 3\n\n\ndef policy(error):\n    return error.code in (429, 503)\n",
    "tool.py": "import sys\n\nprint('times', sum(map(int, sys.argv[1:])))\n",
    "tests/test_retry.py": "from net.retry import LIMIT\n\n\ndef test_limit():\n    assert LIMIT == 3\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def texts_in(folder: Path) -> Mapping[str, str]:
    paths = [one for one in folder.rglob("*") if one.is_file() and ".git" not in one.parts]
    return {str(one.relative_to(folder)): one.read_text() for one in paths}


async def ask(project: Path, goal: str, *turns: Turn) -> list[Event]:
    model = write(project.parent / "script.yaml", *turns)
    async with open_session(home_in(project.parent)) as session:
        team = replace(with_model(TEAMS["assistant"], model), approve="auto")
        await session.start(goal, team, project, "c")
        return [one.event async for one in session.perform("c", await session.sandbox())]


def answer_in(events: list[Event]) -> AnswerGiven:
    (given,) = [event for event in events if isinstance(event, AnswerGiven)]
    return given


async def test_a_question_is_answered_by_reading_and_each_reference_is_looked_up(project: Path) -> None:
    reads = (
        ("list_files", {"folder": ""}),
        ("search", {"pattern": "def policy"}),
        ("outline", {"path": "net"}),
    )
    said = (
        "`policy` decides it, net/retry.py:4, with 7 cases at most; see retry.py:1 and http://localhost:80."
    )
    events = await ask(
        project,
        ASKED,
        calls("proxy", send(ASKED), expect="holds a project"),
        calls(
            "assistant", *reads, ("read", {"path": "net/retry.py"}), expect="# The project in the workspace"
        ),
        says("assistant", said, expect="net/retry.py:4: def policy(error):"),
        says("proxy", said),
    )
    given = answer_in(events)
    assert [(one.path, one.line, one.text) for one in given.references] == [
        ("net/retry.py", 4, "def policy(error):"),
        ("net/retry.py", 1, "LIMIT = 3"),
    ]
    assert not given.unverified
    assert answer_words(given).endswith("net/retry.py:4 ← def policy(error):\nnet/retry.py:1 ← LIMIT = 3")
    answered = [event.text for event in events if isinstance(event, ToolAnswered)]
    assert answered[0].splitlines() == sorted(FILES)
    assert "4 def policy(error)" in answered[2]
    assert answered[3].startswith("1\tLIMIT = 3")
    assert texts_in(project) == FILES


async def test_a_reference_to_nothing_is_named_once_and_then_marked(project: Path) -> None:
    wrong = "See net/retry.py:99 and net/gone.py:3."
    events = await ask(
        project,
        ASKED,
        calls("proxy", send(ASKED)),
        says("assistant", wrong),
        says("assistant", wrong, expect="net/retry.py has no such line"),
        says("proxy", wrong),
        says("proxy", wrong, expect="net/gone.py:3 (there is no such file)"),
    )
    refused = [event.role for event in events if isinstance(event, ReplyRefused)]
    assert refused == ["assistant", "proxy"]
    assert answer_in(events).unverified == (
        "net/retry.py:99 (net/retry.py has no such line)",
        "net/gone.py:3 (there is no such file)",
    )
    assert "not verified: net/gone.py:3" in answer_words(answer_in(events))


@pytest.mark.parametrize(("goal", "left"), [(ASKED, False), ("Write me a script that says so.", True)])
async def test_what_is_written_for_a_question_is_not_left_in_the_project(
    project: Path, goal: str, left: bool
) -> None:
    events = await ask(
        project,
        goal,
        calls("proxy", send(goal)),
        calls("assistant", file("look.py", "print('found')\n"), execute("look.py")),
        says("assistant", "There: net/retry.py:4."),
        says(
            "proxy", "There: net/retry.py:4. It took 12 tries."
        ),  # a number of no program's: there are no data
    )
    assert any(isinstance(event, VersionWritten) for event in events)
    assert answer_in(events).references
    assert ("look.py" in texts_in(project)) is left


async def test_the_persons_scripts_are_run_with_arguments_edited_and_tested(project: Path) -> None:
    edits = [{"path": "net/retry.py", "old": "LIMIT = 3", "new": "LIMIT = 5"}]
    tests = {"path": "tests/test_retry.py", "old": "== 3", "new": "== 5"}
    await ask(
        project,
        "Let it try five times.",
        calls("proxy", send("Let it try five times.")),
        calls("assistant", ("run", {"command": "python tool.py 3 4"}), ("edit", {"edits": [*edits, tests]})),
        calls(
            "assistant",
            ("run", {"command": "python -m pytest -q -p no:cacheprovider tests/test_retry.py"}),
            expect="times 7",
        ),
        says("assistant", "It tries five times, net/retry.py:1.", expect="1 passed"),
        says("proxy", "It tries five times, net/retry.py:1."),
    )
    now = texts_in(project)
    assert now.keys() == FILES.keys()
    assert now["net/retry.py"].startswith("LIMIT = 5")


async def test_no_answer_of_a_tool_is_longer_than_8_kb_and_the_log_has_the_whole(project: Path) -> None:
    (project / "long.txt").write_text("".join(f"line {number}\n" for number in range(4_000)))
    read: tuple[str, Mapping[str, object]] = ("File", {"reasoning": "look", "file_name": "long.txt"})
    events = await ask(
        project,
        ASKED,
        calls("proxy", send(ASKED)),
        calls("assistant", read, ("read", {"path": "long.txt"}), ("run", {"command": "cat long.txt"})),
        says("assistant", "Long.", expect="line 3999"),
        says("proxy", "Long."),
    )
    answered = [event for event in events if isinstance(event, ToolAnswered) and len(event.text) > 1_000]
    assert len(answered) == 3
    assert all(len(event.text.encode()) <= 8_000 for event in answered)
    blobs = FolderBlobs(home_in(project.parent).blobs)
    assert await blobs.get(answered[0].whole) == (project / "long.txt").read_bytes()
    assert not answered[0].shown


BUMP = """\
import pathlib, sys

pathlib.Path("version.txt").write_text(sys.argv[1])
pathlib.Path("picture.bin").write_bytes(bytes(range(256)))
pathlib.Path(".env").write_text("KEY=2")
pathlib.Path("out.log").write_text("ran")
pathlib.Path("old.txt").unlink()
sys.exit(len(sys.argv) - 2)
"""


@pytest.mark.parametrize(
    ("goal", "command", "runs"),
    [
        ("Bump the version to 2.", "python bump.py 2", True),
        ("What does bump.py do?", "python bump.py 2", False),
        ("Bump the version to 2.", "python bump.py 2 and fail", False),
    ],
)
async def test_what_a_script_of_the_persons_changes_is_delivered(
    project: Path, goal: str, command: str, runs: bool
) -> None:
    files = {
        "bump.py": BUMP,
        "version.txt": "1",
        "old.txt": "x",
        ".env": "KEY=1",
        ".gitignore": ".env\n*.log\n",
    }
    for path, text in files.items():
        (project / path).write_text(text)
    before = texts_in(project)
    events = await ask(
        project,
        goal,
        calls("proxy", send(goal)),
        calls("assistant", ("run", {"command": command})),
        calls("assistant", ("read", {"path": "version.txt"}), ("list_files", {}), expect="made or changed: "),
        says("assistant", "Done.", expect="1\t2" if "fail" not in command else "1\t1"),
        says("proxy", "Done."),
    )
    assert answer_in(events)
    if not runs:
        assert texts_in(project) == before
        return
    assert (project / "picture.bin").read_bytes() == bytes(range(256))
    (project / "picture.bin").unlink()
    after = texts_in(project)
    assert {
        path: after.get(path) for path in after.keys() | before.keys() if after.get(path) != before.get(path)
    } == {
        "version.txt": "2",
        "old.txt": None,
    }


def test_a_goal_that_is_a_question_about_a_project_is_answered(septet: Septet, project: Path) -> None:
    said = "CERTAIN: net/retry.py:4."
    model = write(project.parent / "s.yaml", says("proxy", said))
    ran = septet("run", ASKED, "-C", str(project), "--model", model, "--yes")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "net/retry.py:4.\n\nnet/retry.py:4 ← def policy(error):\n"
