"""Members whose turns an agent from outside takes."""

import sys
from pathlib import Path

import pytest

from septet import BadUsage, Team
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.errors import BadConfig
from septet.ports import Record
from septet.wiring.foreign_agents import foreign_agent

pytestmark = pytest.mark.anyio
CODE = "async def rules(state, record):\n    return None\n\n\ndef plain(state, record):\n    return None\n"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package on the path with entry points, as an installed one would be."""
    package = tmp_path / "house-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: house\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[septet.agents]\nrules = house_rules:rules\nplain = house_rules:plain\n"
    )
    (tmp_path / "house_rules.py").write_text(CODE)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


def member(model: str) -> RoleSpec:
    return RoleSpec(name="reviewer", role="reviewer", model=(model,))


@pytest.mark.usefixtures("installed")
def test_an_installed_agent_is_found_by_its_name() -> None:
    found = foreign_agent(member("agent:rules"), {})
    assert found is not None
    assert getattr(found, "__module__", "") == "house_rules"


def test_who_has_a_model_is_no_agent_from_outside() -> None:
    assert foreign_agent(member("openai/some"), {}) is None


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["agent:nobody", "agent:plain"])
def test_an_agent_that_is_not_here_or_not_async_is_named(name: str) -> None:
    with pytest.raises(BadConfig, match="is not here"):
        foreign_agent(member(name), {})


def test_mistakes_in_a_program_are_named_when_a_team_is_loaded() -> None:
    async def review(*_: object) -> None: ...

    with pytest.raises(BadUsage, match="async"):
        Team.load("iterate", agents={"reviewer": lambda state, record: None})  # pyright: ignore[reportArgumentType]  # the mistake
    with pytest.raises(BadUsage, match="stranger"):
        Team.load("iterate", agents={"stranger": review})


async def test_agents_read_what_programs_run_with_as_models_do(tmp_path: Path) -> None:
    seen: list[bool] = []

    async def plan(state: State, record: Record) -> None:
        seen.append(bool(state.environment))
        raise BadUsage("enough", "stop here")

    options = {"planner": plan, "coder": plan, "reviewer": plan}
    async with Team.load("iterate", agents=options, home=tmp_path / "home") as team:
        with pytest.raises(BadUsage, match="enough"):
            await team.start("a greeting", workspace=tmp_path / "work")
    assert seen == [True]
