"""Ways of working: one table, from inside and from outside of the package."""

import os
import runpy
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from team.states import chat, planned, version

from septet.domain.events import ChatEnded, ModelAnswered
from septet.domain.teams import RoleSpec, TeamSpec
from septet.errors import BadConfig
from septet.settings.team_files import load_team
from septet.ways import table
from septet.ways.prompts import prompt
from septet.ways.table import ALIASES, BUILT_IN, add_ways, find_way, floor_for, installed_ways, way_of
from septet.ways.way import Way, plan_only
from septet.wiring.api import Team

HAIKU = Path(__file__).parents[2] / "examples" / "python" / "haiku_way.py"
WAY: Way = runpy.run_path(str(HAIKU))["WAY"]
LINES = """\
turns:
- {role: poet, say: An old silent pond}
- {role: poet, say: A frog jumps into the pond}
- {role: poet, say: Splash! Silence again}
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SEPTET_HOME", str(tmp_path / "home"))
    (tmp_path / "lines.yaml").write_text(LINES)
    return f"scripted:{tmp_path / 'lines.yaml'}"


@pytest.mark.anyio
async def test_a_way_from_outside_is_an_argument_of_the_api(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "WAYS", dict(table.WAYS))
    async with Team.load("haiku", model=script, ways=[WAY]) as team:
        events = [one.event async for one in team.run("a pond", workspace=tmp_path / "pond")]
    assert [one.answer.text for one in events if isinstance(one, ModelAnswered)][
        -1
    ] == "Splash! Silence again"
    assert isinstance(events[-1], ChatEnded)
    assert team.result.status == "answered"


def test_an_installed_way_works_at_the_command_line(script: str, tmp_path: Path) -> None:
    """Its package is on the path with an entry point, as an installed one would be."""
    package = tmp_path / "site" / "haiku-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: haiku\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[septet.ways]\nhaiku = haiku:WAY\n")
    (tmp_path / "site" / "haiku.py").write_text(HAIKU.read_text())
    ran = subprocess.run(
        [sys.executable, "-m", "septet", "run", "a pond", "-t", "haiku", "-m", script, "--quiet"],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "answered"), ran.stderr


def test_names_of_old_logs_and_team_files_mean_the_same_ways() -> None:
    assert {name: find_way(name).name for name in ALIASES} == ALIASES
    assert [find_way(way.name) for way in BUILT_IN] == list(BUILT_IN)
    assert all(way_of(team) is way for way in BUILT_IN for team in way.teams)


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(BadConfig, match="already"):
        add_ways([replace(WAY, name="iterate")])
    assert installed_ways() == {}


def test_a_chat_whose_way_is_not_installed_can_be_looked_at_but_does_not_go_on() -> None:
    team = TeamSpec(name="lost", members=(RoleSpec(name="poet", role="poet"),), floor="nowhere")
    assert way_of(team).asks_person
    with pytest.raises(BadConfig, match="there is no way of working 'nowhere'"):
        floor_for(team, team.budget)


@pytest.mark.parametrize("way", BUILT_IN, ids=lambda way: way.name)
def test_every_prompt_has_a_version_and_a_text(way: Way) -> None:
    package = f"septet.ways.{way.name}"
    folder = files(package) / "prompts"
    names = [one.name.removesuffix(".md") for one in folder.iterdir()] if folder.is_dir() else []
    assert all(prompt(package, name).version >= 1 and prompt(package, name).text.strip() for name in names)


def test_a_team_file_with_a_way_of_septet_makes_nobody_search_the_installed_packages(tmp_path: Path) -> None:
    installed_ways.cache_clear()
    file = tmp_path / "team.yaml"
    file.write_text("way: group_chat\nmembers:\n- role: writer\n")
    load_team(str(file))
    assert installed_ways.cache_info().misses == 0


def test_a_plan_is_the_result_as_long_as_it_is_approved_and_nothing_is_built() -> None:
    assert [plan_only(chat(planned()[:count])) for count in (1, 4)] == ["", ""]
    assert plan_only(chat(planned())).startswith("1. ")
    assert plan_only(chat([*planned(), *version(1, "a")])) == ""
