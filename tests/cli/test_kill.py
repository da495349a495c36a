"""kill -9 at every event of a run, then resume: the same end, and no answer bought twice."""

from pathlib import Path

import pytest
from cli.commands import PATIENCE, SMALL, Septet, envelopes, kinds

EVENTS = 43
"""How many events follow the first one in an uninterrupted run: checked below, so that none is left out."""

RUN = ["run", "add two numbers", "-m", SMALL, "--yes", "--json", "-n", "adding"]


def answers(log: str) -> list[object]:
    return [envelope["data"] for envelope in envelopes(log) if envelope["type"] == "septet.model_answered"]


def artefacts(workspace: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(workspace)): path.read_bytes() for path in workspace.rglob("*") if path.is_file()
    }


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Septet:
    septet = Septet(tmp_path_factory.mktemp("uninterrupted") / "home")
    done = septet(*RUN)
    assert done.returncode == 0, done.stderr
    assert len(kinds(done.stdout)) - 1 == EVENTS
    return septet


@pytest.mark.parametrize("number", range(1, EVENTS + 1))
def test_a_kill_at_any_event_changes_nothing(septet: Septet, uninterrupted: Septet, number: int) -> None:
    process = septet.start(*RUN)
    assert process.stdout is not None
    for _ in range(number):
        assert process.stdout.readline()
    process.kill()
    process.communicate(timeout=PATIENCE)

    resumed = septet("resume", "adding", "-q")
    assert resumed.returncode == 0, resumed.stderr
    ours, theirs = (one("export", "adding", "--format", "jsonl").stdout for one in (septet, uninterrupted))
    assert answers(ours) == answers(theirs)
    shown, expected = (
        one("show", "adding").stdout.replace(str(one.home), "HOME") for one in (septet, uninterrupted)
    )
    assert shown == expected
    assert artefacts(septet.home / "work" / "adding") == artefacts(uninterrupted.home / "work" / "adding")


def test_a_second_conductor_is_turned_away(septet: Septet) -> None:
    first = septet.start(*RUN)
    assert first.stdout is not None
    while "run_started" not in first.stdout.readline():
        pass
    second = septet("resume", "adding", "-q")
    _, complaint = first.communicate(timeout=PATIENCE)
    codes = {first.returncode, second.returncode}
    assert codes <= {0, 75}, (complaint, second.stderr)
    assert 0 in codes
    log = septet("export", "adding", "--format", "jsonl").stdout
    assert kinds(log).count("chat_ended") == 1
    assert len(answers(log)) == 5
