"""What a killed Septet leaves in the system's temporary folder goes with the next start, and nothing else does."""

from pathlib import Path
from signal import SIGINT

import pytest
from cli.commands import PATIENCE, Septet

EXEC = ("exec", "-C", "work", "--")
BUSY = (*EXEC, "sh", "-c", "echo busy; sleep 300")


@pytest.fixture
def temporary(septet: Septet, tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    (tmp_path / "work").mkdir()
    septet.environment["TMPDIR"] = str(folder)
    return folder


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_next_start_takes_away_what_a_killed_one_left(septet: Septet, temporary: Path) -> None:
    for foreign in ("septet-notes", "septet-temporary", "septet-temporary-notes"):
        (temporary / foreign).mkdir()
    alone = names(temporary)
    living, killed = septet.start(*BUSY), None
    try:
        assert living.stdout is not None
        assert living.stdout.readline() == "busy\n"
        before = names(temporary)
        killed = septet.start(*BUSY)
        assert killed.stdout is not None
        assert killed.stdout.readline() == "busy\n"
        killed.kill()
        killed.wait(PATIENCE)
        left = names(temporary) - before
        assert left, "a kill leaves something"
        assert septet(*EXEC, "true").returncode == 0
        assert names(temporary) == before, "what the living one uses stays"
    finally:
        for process in (living, killed):
            if process is not None:
                process.send_signal(SIGINT)
                process.communicate(timeout=PATIENCE)
    assert names(temporary) == alone, "an interrupted one leaves nothing"
