"""The planning phase and what it leaves: approval is of one text, and the artefact files are written once."""

from pathlib import Path

import pytest
from cli.commands import SMALL, Septet
from cli.terminals import needs_terminal, on_terminal

PLAN = """\
1. add(a, b) gives the sum
   check: tests test_add.py::test_sum
2. The program prints what it adds
   check: command python add.py 2 3 => 5
run: python add.py 1 1
"""


def test_the_plan_alone_goes_to_stdout(septet: Septet) -> None:
    planned = septet("plan", "add", "-m", SMALL, "--yes", "-q")
    assert (planned.returncode, planned.stdout) == (0, PLAN)


def test_a_plan_of_ones_own_needs_no_planner(septet: Septet, tmp_path: Path) -> None:
    (tmp_path / "plan.txt").write_text(PLAN)
    done = septet("run", "add", "-m", SMALL, "--yes", "-q", "--plan", "plan.txt", "-n", "adding", "-C", "w")
    assert done.returncode == 0, done.stderr
    assert "4 answers" in septet("show", "adding").stdout
    assert (tmp_path / "w" / "MasterPlan.txt").read_text() == PLAN


def test_a_file_that_is_no_plan_is_refused(septet: Septet, tmp_path: Path) -> None:
    (tmp_path / "plan.txt").write_text("do what you like")
    refused = septet("run", "add", "-m", SMALL, "--yes", "--plan", "plan.txt")
    assert refused.returncode == 5
    assert "plan.txt is not a plan: no numbered requirement" in refused.stderr
    assert not septet.home.exists()


def test_the_seeds_files_are_kept_and_never_rewritten(septet: Septet, tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    done = septet("run", "add", "-m", SMALL, "--yes", "-q", "-n", "adding", "-C", "w")
    assert done.returncode == 0, done.stderr
    assert (workspace / "MasterPlan.txt").read_text() == PLAN
    assert (workspace / "script_v2.py").read_text() == (workspace / "add.py").read_text()
    assert "F1 [must] P1 (add.py:5): it subtracts" in (workspace / "review_v1.txt").read_text()
    assert (workspace / "review_v2.txt").read_text() == "verdict: accept\n"
    (workspace / "script_v1.py").write_text("# the person's own\n")
    (workspace / "review_v2.txt").unlink()
    assert septet("resume", "adding", "-q").returncode == 0
    assert (workspace / "script_v1.py").read_text() == "# the person's own\n"
    assert (workspace / "review_v2.txt").read_text() == "verdict: accept\n"


@pytest.mark.torture
def test_what_the_person_says_at_a_review_is_in_the_review_and_reaches_the_coder(
    septet: Septet, tmp_path: Path
) -> None:
    members = [f"- role: {role}" for role in ("planner", "proxy", "coder", "runner", "reviewer")]
    (tmp_path / "team.yaml").write_text(
        "\n".join(["members:", *members, "consult: true", "keepsakes: [reviews]"])
    )
    run = ["run", "add", "-m", SMALL, "-t", "team.yaml", "-n", "adding", "-C", "w", "-q"]
    assert septet(*run).returncode == 4
    assert septet("resume", "adding", "sounds good", "-q").returncode == 4
    assert "waits for a person (review)" in septet("resume", "adding").stderr
    assert septet("resume", "adding", "negative numbers look odd", "-q").returncode == 4
    assert "the person says: negative numbers look odd" in (tmp_path / "w" / "review_v1.txt").read_text()
    assert septet("resume", "adding", "ok", "-q").returncode == 0


@pytest.mark.torture
def test_the_person_may_accept_what_the_checks_refuse(septet: Septet, tmp_path: Path) -> None:
    members = [f"- role: {role}" for role in ("planner", "proxy", "coder", "runner", "reviewer")]
    (tmp_path / "team.yaml").write_text("\n".join(["members:", *members, "consult: true"]))
    septet("run", "add", "-m", SMALL, "-t", "team.yaml", "-n", "adding", "-q")
    septet("resume", "adding", "approve", "-q")
    accepted = septet("resume", "adding", "accept")
    assert accepted.returncode == 0
    assert "accepted by the person" in accepted.stdout


@pytest.mark.torture
def test_a_coder_that_ignores_a_finding_is_asked_once(septet: Septet, tmp_path: Path) -> None:
    whole = Path(SMALL.removeprefix("scripted:")).read_text()
    silent = whole.replace('say: "F1: fixed, it adds now."', "say: It adds now.")
    tail = silent[silent.index("- role: coder\n  expect") : silent.rindex("- role: reviewer")]
    (tmp_path / "silent.yaml").write_text(
        silent.replace(tail, tail + tail.replace("it subtracts", "no answer to F1"))
    )
    done = septet("run", "add", "-m", "scripted:silent.yaml", "--yes", "-n", "adding")
    assert done.returncode == 0, done.stderr
    assert "reply was refused: no answer to F1" in done.stderr
    assert '"answer":"unanswered"' in septet("export", "adding", "--format", "jsonl").stdout


def test_nothing_else_is_written(adding: Septet) -> None:
    names = [path.name for path in (adding.home / "work" / "adding").iterdir()]
    seeds = ["MasterPlan.txt", "review_v1.txt", "review_v2.txt", "script_v1.py", "script_v2.py"]
    assert sorted(names) == sorted([*seeds, "add.py", "test_add.py"])


def test_the_history_has_the_plans_that_the_person_wrote(septet: Septet, tmp_path: Path) -> None:
    members = [f"- role: {role}" for role in ("planner", "proxy", "coder", "runner", "reviewer")]
    (tmp_path / "team.yaml").write_text("\n".join(["members:", *members, "keepsakes: [history]"]))
    (tmp_path / "plan.txt").write_text(PLAN)
    team = ["-m", SMALL, "-t", "team.yaml", "-n", "adding", "-C", "w", "-q"]
    assert septet("run", "add", *team, "--plan", "plan.txt").returncode == 4
    assert septet("resume", "adding", PLAN.replace("the sum", "the total"), "-q").returncode == 4
    history = (tmp_path / "w" / "chat_history.txt").read_text()
    assert f"] person:\nthis plan:\n{PLAN}" in history
    assert history.index("gives the sum") < history.index("gives the total")
    for form in ("txt", "md"):
        assert "add(a, b) gives the total" in septet("export", "adding", "--format", form).stdout


def editor(folder: Path, command: str) -> dict[str, str]:
    """A program that edits the file it is given, as a person would."""
    program = folder / "editor"
    program.write_text(f"#!/bin/sh\n{command}\n")
    program.chmod(0o755)
    return {"EDITOR": str(program)}


@needs_terminal
def test_the_plan_is_edited_in_the_persons_editor(septet: Septet, tmp_path: Path) -> None:
    settings = editor(tmp_path, "sed -i 's/gives the sum/gives the total/' \"$1\"")
    with on_terminal(septet, "plan", "add", "-m", SMALL, "-n", "adding", environment=settings) as terminal:
        terminal.wait_for("approve the plan [Enter]")
        terminal.type("e")
        screen = terminal.wait_for("approve the plan [Enter]", times=2)
        assert "-1. add(a, b) gives the sum" in screen
        assert "+1. add(a, b) gives the total" in screen
        terminal.type("approve")
        terminal.wait_for("exit code 0")
    assert septet("resume", "adding", "-q").stdout == PLAN.replace("the sum", "the total")


@needs_terminal
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("true", "approve the plan [Enter]"),
        ('echo nonsense > "$1"', "this is no longer a valid plan (no numbered requirement"),
        ("exit 7", "the editor failed"),
    ],
)
@pytest.mark.torture
def test_an_editor_that_leaves_no_new_plan_approves_nothing(
    septet: Septet, tmp_path: Path, command: str, said: str
) -> None:
    settings = editor(tmp_path, command)
    with on_terminal(septet, "plan", "add", "-m", SMALL, "-n", "adding", environment=settings) as terminal:
        terminal.wait_for("approve the plan [Enter]")
        terminal.type("e")
        assert said in terminal.wait_for("approve the plan [Enter]", times=2)
        terminal.type("q")
        terminal.wait_for("exit code 3")
    assert "stopped by the person" in septet("list").stdout
