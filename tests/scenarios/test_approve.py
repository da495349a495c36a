"""`--approve` and `--out`: what was agreed to beforehand, and where the result goes."""

import msgspec
import pytest
from cli.commands import SMALL, Septet, envelopes, kinds
from cli.terminals import needs_terminal, on_terminal

from septet.domain.plans import Plan, parse_plan

RUN = ("run", "add two numbers", "-m", SMALL, "-n", "adding")


def test_all_is_yes_and_edits_asks_for_no_plan(septet: Septet) -> None:
    for approval in ("all", "edits"):
        done = septet("plan", "add", "-m", SMALL, "--approve", approval, "--json")
        assert done.returncode == 0, done.stderr
        (approved,) = [one for one in envelopes(done.stdout) if one["type"] == "septet.plan_approved"]
        assert '"by":"flag"' in msgspec.json.encode(approved["data"]).decode()


@pytest.mark.torture
def test_ask_and_never_wait_where_nobody_is(septet: Septet) -> None:
    for approval, later in (("ask", "all"), ("never", "edits")):
        waiting = septet("plan", "add", "-m", SMALL, "-n", approval, "--approve", approval, "-q")
        assert waiting.returncode == 4
        assert f"septet resume {approval} 'sounds good'" in waiting.stderr
        assert septet("resume", approval, "--approve", later, "-q").returncode == 0


def test_a_team_that_takes_plans_as_they_come_can_be_made_to_ask(septet: Septet) -> None:
    assert septet(*RUN, "-t", "autocoder", "--approve", "ask", "-q").returncode == 4
    assert septet("demo", "clock", "--approve", "never", "-q").returncode == 4


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["--yes", "--approve", "ask"], "`--yes` and `--approve ask` cannot be combined"),
        (["--approve", "some"], "--approve cannot be 'some': use ask, edits, all or never"),
        (["--out", "none/result.txt"], "there is no folder none"),
        (["--out", "."], "is a folder"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_happens(
    septet: Septet, args: list[str], reason: str
) -> None:
    refused = septet(*RUN, *args)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert reason in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert not septet.home.exists()


def test_the_result_goes_to_a_file(adding: Septet) -> None:
    target = adding.home.parent / "result.txt"
    done = adding("resume", "adding", "--out", "result.txt")
    assert (done.returncode, done.stdout) == (0, "")
    told = "adding: done; only the coder's own tests show P1; the coder knew every example of P2"
    assert f"{told}; the result is in result.txt" in done.stderr
    assert "✓  P1 add(a, b) gives the sum" in target.read_text()
    assert f"{told}\nthe program is in " in target.read_text()
    again = adding("resume", "adding", "--json", "--out", "result.txt")
    assert kinds(again.stdout)[-1] == "result", "programs are told as ever"
    assert envelopes(target.read_text()) == envelopes(again.stdout)[-1:]
    assert {path.name for path in adding.home.parent.iterdir()} == {"home", "result.txt"}


def test_a_plan_is_a_result_and_a_question_is_none(septet: Septet) -> None:
    target = septet.home.parent / "plan.txt"
    target.write_text("before")
    assert septet("plan", "add", "-m", SMALL, "-n", "add", "-q", "--out", "plan.txt").returncode == 4
    assert target.read_text() == "before"
    other = septet("plan", "add", "-m", SMALL, "-n", "other")
    exactly = other.stderr.partition("--action ")[2].split()[0]
    told = septet("resume", "other", "sounds good").stderr.splitlines()[0]
    assert told == f"septet: 'sounds good' answers: plan, 1. add(a, b) gives the sum, … (--action {exactly})"
    done = septet("resume", "add", "sounds good", "-q", "--out", "plan.txt")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert isinstance(parse_plan(target.read_text()), Plan)


@needs_terminal
def test_never_asks_nobody_at_a_terminal_either(septet: Septet) -> None:
    with on_terminal(septet, *RUN, "--approve", "never") as terminal:
        assert "exit code 4" in terminal.wait_for("exit code")
