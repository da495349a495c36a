"""Every recorded chat of every way of working, and every demo, gives the same log once more."""

import pytest
from cli.commands import SCRIPTS, SMALL, Septet, envelopes

RUNS: dict[str, tuple[str, ...]] = {
    "iterate": ("run", "add two numbers", "-m", SMALL),
    "plan": ("plan", "add two numbers", "-m", SMALL),
    "group chat": ("run", "a poem", "-t", "writer-editor", "-m", f"scripted:{SCRIPTS / 'talk.yaml'}"),
    "pair": (
        *("run", "sum of 1 to 10", "-t", "pair", "--run-as", "cells"),
        *("-m", f"scripted:{SCRIPTS / 'cells.yaml'}"),
    ),
    "assistant": ("run", "say hello", "-t", "assistant", "-m", f"scripted:{SCRIPTS / 'assistant.yaml'}"),
    "demo hello": ("demo", "hello"),
    "demo midi": ("demo", "midi"),
    "demo clock": ("demo", "clock"),
    "demo bars": ("demo", "bars"),
    "demo ctr": ("demo", "ctr"),
    "demo pull-request": ("demo", "pull-request"),
}
EXISTING = {"demo ctr"}
"""On data of the person, which may have changed since: that is said, and nothing is run."""
QUICK = {"group chat", "assistant"}


@pytest.mark.parametrize(
    "which", [one if one in QUICK else pytest.param(one, marks=pytest.mark.torture) for one in RUNS]
)
def test_a_recorded_chat_gives_the_same_log(septet: Septet, which: str) -> None:
    done = septet(*RUNS[which], "--yes", "--json")
    assert done.returncode in (0, 3), done.stderr
    chat = str(envelopes(done.stdout)[-1]["chat"])
    again = septet("replay", chat)
    if which in EXISTING:
        assert (again.returncode, again.stdout) == (2, "")
        assert "files of yours, which may have changed since" in again.stderr
    else:
        assert (again.returncode, again.stderr) == (0, ""), again.stdout
        assert again.stdout.startswith("the same: ")
