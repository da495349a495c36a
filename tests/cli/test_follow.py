"""`septet watch NAME`: what happened and what happens in a chat, without touching it."""

import signal
import subprocess

import anyio
import pytest
from cli.commands import PATIENCE, SMALL, Septet, envelopes, kinds

from septet.domain.events import ChatEnded, PersonSpoke
from septet.wiring.session import open_session


def line_with(process: subprocess.Popen[str], words: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return line
    raise AssertionError(f"it ended without {words!r}")


@pytest.fixture
def waiting(septet: Septet, monkeypatch: pytest.MonkeyPatch) -> Septet:
    """A chat that waits for its plan to be approved."""
    monkeypatch.setenv("SEPTET_HOME", str(septet.home))
    asked = septet("run", "add two numbers", "-m", SMALL, "-q", "-n", "sum")
    assert asked.returncode == 4, asked.stderr
    return septet


def test_what_another_process_records_is_shown_until_the_chat_ends(waiting: Septet) -> None:
    async def finish() -> None:
        async with open_session() as session:
            await session.append("sum", PersonSpoke(text="in blue, please"))
            await session.append("sum", ChatEnded(reason="stopped", detail="stopped by the person"))

    with waiting.start("watch", "sum") as watching:
        assert "add two numbers" in line_with(watching, "sum: ")
        line_with(watching, "planner  2 requirements")
        assert "(plan): septet resume sum" in line_with(watching, "waits for an answer")
        anyio.run(finish)
        line_with(watching, "person  in blue, please")
        out, _ = watching.communicate(timeout=PATIENCE)
    shown = waiting("show", "sum", "--json")
    assert watching.returncode == envelopes(shown.stdout)[0]["exit_code"] != 0
    assert "sum: stopped" in out


def test_who_leaves_changes_nothing(waiting: Septet) -> None:
    before = waiting("export", "sum", "--format", "jsonl").stdout
    with waiting.start("watch", "sum") as watching:
        line_with(watching, "waits for an answer")
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=PATIENCE)
    assert (watching.returncode, err.strip()) == (130, "septet: interrupted")
    assert waiting("export", "sum", "--format", "jsonl").stdout == before


def test_an_ended_chat_is_told_as_a_whole_also_for_programs(adding: Septet) -> None:
    watched = adding("watch", "adding", "--json")
    log = adding("export", "adding", "--format", "jsonl").stdout
    result = adding("show", "adding", "--json").stdout
    assert (watched.returncode, watched.stderr) == (0, "")
    assert watched.stdout == log + result
    assert kinds(log)[-1] == "chat_ended"


def test_an_unknown_chat_is_a_mistake(septet: Septet) -> None:
    unknown = septet("watch", "none-such")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "none-such" in unknown.stderr
