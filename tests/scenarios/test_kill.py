"""kill -9 at the events of a run, then resume: the same end, and no answer bought twice."""

import subprocess
from typing import NamedTuple

import pytest
from cli.commands import PATIENCE, SMALL, Septet, kinds

from septet.domain.codec import decode
from septet.domain.events import Event, ModelAnswered, RunStarted

EVENTS = 45
STRIDE = 5
"""Events between two kills; `just torture` kills at each."""
"""How many events an uninterrupted run has: checked below, so that none is left out."""

RUN = ["run", "add two numbers", "-m", SMALL, "--yes", "--json", "-n", "adding"]


def answers(log: str) -> list[tuple[str, str]]:
    """Who said what; the prompts differ, for the test runs that they tell of take their time."""
    said = [decode(line).event for line in log.splitlines()]
    return [(event.role, event.answer.text) for event in said if isinstance(event, ModelAnswered)]


class Traces(NamedTuple):
    """What a chat leaves behind: who said what, how it is shown, the files."""

    said: list[tuple[str, str]]
    shown: str
    files: dict[str, bytes]


def traces(septet: Septet) -> Traces:
    workspace = septet.home / "work" / "adding"
    files = {
        str(path.relative_to(workspace)): path.read_bytes() for path in workspace.rglob("*") if path.is_file()
    }
    shown = septet("show", "adding").stdout.replace(str(septet.home), "HOME")
    return Traces(answers(septet("export", "adding", "--format", "jsonl").stdout), shown, files)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    septet = Septet(tmp_path_factory.mktemp("uninterrupted") / "home")
    done = septet(*RUN)
    assert done.returncode == 0, done.stderr
    assert len(kinds(done.stdout)) - 1 == EVENTS
    return traces(septet)


def first_news(process: subprocess.Popen[str], begun: set[str]) -> Event | None:
    """The first event that is no news of a run that had begun already; nothing if the chat was at its end."""
    assert process.stdout is not None
    for line in process.stdout:
        if kinds(line) == ["result"]:
            return None
        event = decode(line).event
        if not (isinstance(event, RunStarted) and event.id in begun):
            return event
    return None


def test_a_chat_that_is_killed_again_and_again_ends_as_if_it_never_was(
    septet: Septet, uninterrupted: Traces
) -> None:
    command, begun, kills = RUN, set[str](), 0
    while True:
        process = septet.start(*command)
        news = [first_news(process, begun) for _ in range(STRIDE)]
        if news[-1] is None:
            break
        begun |= {event.id for event in news if isinstance(event, RunStarted)}
        process.kill()
        process.communicate(timeout=PATIENCE)
        command, kills = ["resume", "adding", "--json"], kills + 1
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, complaint
    assert kills > EVENTS / STRIDE / 2, "an event that was stored before the kill came needs none of its own"
    assert traces(septet) == uninterrupted


@pytest.mark.torture
@pytest.mark.parametrize("number", range(1, EVENTS + 1))
def test_a_kill_at_any_event_changes_nothing(septet: Septet, uninterrupted: Traces, number: int) -> None:
    septet.killed(*RUN, times=number)
    resumed = septet("resume", "adding", "-q")
    assert resumed.returncode == 0, resumed.stderr
    assert traces(septet) == uninterrupted


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
