"""Teams from files: combined freely, checked strictly."""

from pathlib import Path

import pytest

from septet.domain.teams import RoleSpec
from septet.errors import BadConfig
from septet.settings.team_files import load_team
from septet.team.teams import TEAMS


def write(folder: Path, text: str) -> str:
    path = folder / "team.yaml"
    path.write_text(text)
    return str(path)


def test_built_in_teams_go_by_name() -> None:
    assert load_team("iterate") is TEAMS["iterate"]


def test_a_file_describes_a_team(tmp_path: Path) -> None:
    text = "members:\n- role: planner\n- {role: coder, name: ada, model: 'scripted:x'}\nbudget: {rounds: 2}\n"
    team = load_team(write(tmp_path, text))
    assert team.name == "team"
    assert team.budget.rounds == 2
    assert team.members == (
        RoleSpec(name="planner", role="planner"),
        RoleSpec(name="ada", role="coder", model=("scripted:x",)),
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("members: [{role: codder}]", "unknown role 'codder': did you mean 'coder'?"),
        ("members: [{role: coder}, {role: coder}]", "two members are called 'coder'"),
        ("members: []", "has no members"),
        ("members: [{role: coder}]\nfloor: anarchy", "unknown floor 'anarchy'"),
        ("members: [{role: coder, model: 'url:http://x#y'}]", "may not choose the address"),
        ("members: [{role: coder}]\nbugdet: {}", "team.yaml:2: unknown key 'bugdet': did you mean 'budget'?"),
        ("- a", "expected `object`, got `array`"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(BadConfig) as caught:
        load_team(write(tmp_path, text))
    assert complaint in str(caught.value)


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(BadConfig, match="no team 'itarate'"):
        load_team("itarate")
