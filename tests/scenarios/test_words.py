"""A bare word on the command line: a command, a question, or a goal that somebody really meant."""

import pytest
from cli.commands import SMALL, Septet
from cli.terminals import needs_terminal, on_terminal

PAID = {"SEPTET_MODEL": SMALL}
"""Something to think with is there: a word that is taken for a goal starts a chat."""


@pytest.mark.parametrize(
    ("args", "same"),
    [
        (["help"], ["--help"]),
        (["help", "rm"], ["rm", "--help"]),
        (["version"], ["--version"]),
        (["ls"], ["list"]),
        (["status"], ["list"]),
        (["status", "adding"], ["show", "adding"]),
        (["ls", "--json"], ["list", "--json"]),
    ],
    ids=str,
)
def test_what_people_try_first_is_a_command(adding: Septet, args: list[str], same: list[str]) -> None:
    tried, meant = adding(*args, environment=PAID), adding(*same)
    assert tried.returncode == 0, tried.stderr
    assert tried.stdout == meant.stdout
    assert len(adding("list").stdout.splitlines()) == 1, "nothing was begun"


@pytest.mark.parametrize(
    ("word", "near"), [("lst", "list"), ("start", "run"), ("stat", "status"), ("delete", "rm")]
)
def test_a_word_that_is_near_a_command_is_no_goal_where_nobody_can_be_asked(
    septet: Septet, word: str, near: str
) -> None:
    refused = septet(word, "--yes", environment=PAID)
    assert refused.returncode == 2
    assert f"did you mean '{near}'?" in refused.stderr
    assert f"septet run {word}" in refused.stderr
    assert not septet.home.exists()


@needs_terminal
def test_at_a_terminal_such_a_word_is_asked_about(septet: Septet) -> None:
    with on_terminal(septet, "lst", "--yes", environment=PAID) as terminal:
        terminal.wait_for("Build 'lst' as a goal? [y/N]")
        terminal.type("n")
        assert "exit code 2" in terminal.wait_for("exit code")
    assert not septet.home.exists()
    with on_terminal(septet, "lst", "--yes", environment=PAID) as terminal:
        terminal.wait_for("Build 'lst' as a goal? [y/N]")
        terminal.type("y")
        assert "exit code 0" in terminal.wait_for("exit code")


def test_deleting_and_renaming_need_the_whole_name(adding: Septet) -> None:
    for command in (["rm", "add", "--yes"], ["rename", "add", "other"]):
        refused = adding(*command)
        assert refused.returncode == 2
        assert "this needs the whole name, adding" in refused.stderr
    assert "adding" in adding("list").stdout
    assert adding("rm", "adding", "--yes").returncode == 0
