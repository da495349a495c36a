"""No option is taken and then ignored: it is honoured, or refused in one line that says why and what to do."""

from pathlib import Path

import pytest
from cli.commands import SMALL, Septet, kinds

TEAM = "members: [{role: planner}, {role: proxy}, {role: coder}, {role: runner}, {role: reviewer}]\n"
OWN = f"members: [{{role: planner, model: '{SMALL}'}}]\nfloor: plan\n"
PAIR = "floor: pair\nmembers: [{role: manager}, {role: coder}, {role: runner}, {role: planner}, {role: reviewer}]\n"


@pytest.mark.parametrize(
    ("team", "args", "code", "complaint"),
    [
        (TEAM, ["--yes", "--step"], 2, "`--yes` and `--step` cannot be combined"),
        (TEAM, ["--approve", "all", "--step"], 2, "`--approve all` and `--step` cannot be combined"),
        (TEAM, ["--approve", "edits", "--step"], 2, "`--approve edits` and `--step` cannot be combined"),
        (
            f"{TEAM}consult: true",
            ["--yes"],
            2,
            "asks you before each review (consult: true): leave out --yes",
        ),
        (
            f"{TEAM}stepwise: true",
            ["--yes"],
            2,
            "asks you before each turn (stepwise: true): leave out --yes",
        ),
        (f"{TEAM}consult: true", ["--approve", "edits"], 2, "leave out --approve edits"),
        ("floor: plan\nconsult: true\nmembers: [{role: planner}]", [], 5, "has no reviews to ask you before"),
        (PAIR, [], 5, "the way pair gives no turn to a planner"),
        (f"{TEAM}floor: pair".replace("planner", "manager"), [], 5, "gives no turn to a reviewer"),
    ],
    ids=lambda value: str(value)[-40:],
)
def test_what_would_be_ignored_is_refused(
    septet: Septet, tmp_path: Path, team: str, args: list[str], code: int, complaint: str
) -> None:
    (tmp_path / "team.yaml").write_text(team)
    model = [] if "-m" in args else ["-m", SMALL]
    refused = septet("run", "add", "-t", "team.yaml", *model, *args)
    assert refused.returncode == code, refused.stderr
    (line,) = refused.stderr.splitlines()
    assert complaint in line
    assert not septet.home.exists()


def test_a_model_of_the_environment_is_for_members_without_one(septet: Septet, tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text(OWN)
    done = septet("run", "add", "-t", "team.yaml", "--yes", "-q", environment={"SEPTET_MODEL": "what?"})
    assert done.returncode == 0, done.stderr


def test_a_team_that_takes_plans_as_they_come_still_asks_before_each_review(
    septet: Septet, tmp_path: Path
) -> None:
    (tmp_path / "team.yaml").write_text(f"{TEAM}approve: auto\nconsult: true\n")
    waits = septet("run", "add", "-t", "team.yaml", "-m", SMALL, "--json", "-n", "adding")
    assert waits.returncode == 4, waits.stderr
    assert "plan_approved" in kinds(waits.stdout)
    assert "waits for a person (review): answer with: septet resume adding 'sounds good'" in waits.stderr
    assert septet("resume", "adding", "sounds good", "-q").returncode == 4
    assert septet("resume", "adding", "sounds good", "-q").returncode == 0


@pytest.mark.parametrize("option", [["-m", SMALL], ["--data", "x.csv"], ["--fetch"]], ids=str)
def test_a_chat_goes_on_as_it_began(adding: Septet, option: list[str]) -> None:
    refused = adding("resume", "adding", "again", *option)
    assert refused.returncode == 2
    assert f"leave out {option[0].replace('-m', '--model')}" in refused.stderr


def test_step_mode_cannot_be_turned_on_later(adding: Septet) -> None:
    refused = adding("resume", "adding", "again", "--step")
    assert refused.returncode == 2
    assert "a chat keeps" in refused.stderr
