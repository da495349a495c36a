"""kill -9 at any time, in anything: a chat in a repository, killed again and again, ends as if it never was."""

import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.commands import PATIENCE, Septet
from scenarios.test_tool_kills import Traces, begin, traces

from septet.domain.codec import KINDS

KILLS, PIECES = 1_000, 20
LASTING = ("model_answered", "version_written", "tool_called", "tool_answered", "delivered", "chat_ended")
assert set(LASTING) <= set(KINDS.values())


class Forks:
    """Runs the program in forks, which begin at once; so most of the time that a kill meets is work."""

    def __init__(self, septet: Septet, folder: Path) -> None:
        self._septet = septet
        command = [sys.executable, str(Path(__file__).with_name("fork_server.py")), str(folder / "said")]
        self._process = subprocess.Popen(
            command,
            env=septet.environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *args: str, seconds: float = PATIENCE) -> tuple[int, float, str]:
        """What it came to, what it took, and what it said if it failed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"args": args, "seconds": seconds}), file=self._process.stdin, flush=True)
        told = json.loads(self._process.stdout.readline())
        return told["code"], told["took"], told["said"]

    def close(self) -> None:
        self._process.communicate(timeout=PATIENCE)


def kinds_of(home: Path) -> list[str]:
    """The kinds of what is in the log, read without the program."""
    if not (home / "septet.db").exists():
        return []
    with sqlite3.connect(f"file:{home / 'septet.db'}?mode=ro", uri=True) as log:
        tables = log.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        found = [kind for (kind,) in log.execute("SELECT kind FROM events ORDER BY id")] if tables else []
    log.close()
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kills")


class Whole:
    """A run that nobody killed: what it left, its events, and how long it took."""

    def __init__(self, folder: Path) -> None:
        septet, command = begin(folder)
        forks = Forks(septet, folder)
        code, self.seconds, said = forks.run(*command)
        forks.close()
        assert code == 0, said
        self.traces: Traces = traces(septet, folder)
        self.kinds = [kind for kind in kinds_of(septet.home) if kind in LASTING]


@pytest.fixture(scope="module")
def whole(place: Path) -> Whole:
    return Whole(place / "whole")


def end_in_spite_of_kills(folder: Path, whole: Whole, chance: random.Random) -> int:
    """How many kills it took until the chat was at its end; it is as the one that was not killed."""
    septet, command = begin(folder)
    forks, kills, code, said = Forks(septet, folder), 0, -9, ""
    while code == -9:
        words = ("resume", "c", "-q") if kinds_of(septet.home) else command
        code, _, said = forks.run(*words, seconds=chance.expovariate(12 / whole.seconds))
        kills += code == -9
    forks.close()
    assert code == 0, said
    assert [kind for kind in kinds_of(septet.home) if kind in LASTING] == whole.kinds
    assert traces(septet, folder) == whole.traces
    return kills


def test_a_chat_that_is_killed_at_any_time_ends_as_if_it_never_was(place: Path, whole: Whole) -> None:
    assert end_in_spite_of_kills(place / "short", whole, random.Random(17)) > 0


@pytest.mark.torture
@pytest.mark.parametrize("piece", range(PIECES))
def test_a_thousand_kills_lose_nothing_and_double_nothing(
    place: Path, whole: Whole, piece: int, record_property: Callable[[str, object], None]
) -> None:
    chance, kills, number = random.Random(piece), 0, 0
    while kills < KILLS / PIECES:
        number += 1
        kills += end_in_spite_of_kills(place / f"{piece}-{number}", whole, chance)
    record_property("kills", f"{kills} in {number} chats")
