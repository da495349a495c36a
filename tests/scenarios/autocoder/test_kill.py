"""kill -9 at the events of an autocoder's run, then resume: the same end, and no answer bought twice."""

from pathlib import Path

import pytest
from cli.commands import Septet, kinds
from scenarios.autocoder.hello import CASES, fill, write_script

from septet.domain.codec import decode
from septet.domain.events import ModelAnswered

CASE = CASES["wrong code"]
LAST = 54
"""The number of the last event; checked below."""
TELLING = [10, 49]


def start(septet: Septet, folder: Path) -> list[str]:
    project = fill(folder / "project", CASE.files)
    model = write_script(folder / "script.yaml", CASE.steps)
    return ["run", "greet", "-t", "autocoder", "-m", model, "-C", str(project), "--json", "-n", "hello"]


def traces(septet: Septet, folder: Path) -> tuple[list[tuple[str, str]], dict[str, bytes], list[str]]:
    """Who said what, the files, and what was decided, called and written, in order."""
    log = septet("export", "hello", "--format", "jsonl").stdout
    events = [decode(line).event for line in log.splitlines()]
    said = [(event.role, event.answer.text) for event in events if isinstance(event, ModelAnswered)]
    project = folder / "project"
    files = {path.name: path.read_bytes() for path in project.iterdir() if path.is_file()}
    lasting = {
        "decision_recorded",
        "tool_called",
        "tool_answered",
        "version_written",
        "snapshot_taken",
        "chat_ended",
    }
    return said, files, [kind for kind in kinds(log) if kind in lasting]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> object:
    folder = tmp_path_factory.mktemp("uninterrupted")
    septet = Septet(folder / "home")
    done = septet(*start(septet, folder))
    assert done.returncode == 0, done.stderr
    assert len(kinds(done.stdout)) - 1 == LAST
    return traces(septet, folder)


def killed_at(septet: Septet, folder: Path, number: int) -> object:
    septet.killed(*start(septet, folder), times=number)
    resumed = septet("resume", "hello", "-q")
    assert resumed.returncode == 0, resumed.stderr
    return traces(septet, folder)


@pytest.mark.parametrize("number", TELLING)
def test_a_kill_changes_nothing(septet: Septet, tmp_path: Path, uninterrupted: object, number: int) -> None:
    assert killed_at(septet, tmp_path, number) == uninterrupted


@pytest.mark.torture
@pytest.mark.parametrize("number", range(1, LAST))
def test_a_kill_at_any_event_changes_nothing(
    septet: Septet, tmp_path: Path, uninterrupted: object, number: int
) -> None:
    assert killed_at(septet, tmp_path, number) == uninterrupted
