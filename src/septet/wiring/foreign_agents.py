"""Agents from outside that take the turns of members: those of the program, then those of installed packages."""

from collections.abc import Mapping
from inspect import iscoroutinefunction
from typing import TypeGuard

from septet.common.entry_points import plugin
from septet.domain.teams import RoleSpec
from septet.errors import BadConfig, BadUsage
from septet.models.providers.agent import PREFIX
from septet.ports import Agent

GROUP = "septet.agents"


def foreign_agent(member: RoleSpec, own: Mapping[str, Agent]) -> Agent | None:
    """The agent that the member's model names (`agent:NAME`); None if it names a model."""
    name = next((one.removeprefix(PREFIX) for one in member.model if one.startswith(PREFIX)), "")
    if not name:
        return None
    if (agent := own.get(name)) is not None:
        return agent
    found = plugin(GROUP, name)
    if not is_agent(found):
        cause = f"the agent '{name}' of {member.name} is not here"
        raise BadConfig(cause, "install its package, or pass it: Team.load(agents=…)")
    return found


def is_agent(agent: object) -> TypeGuard[Agent]:
    return iscoroutinefunction(agent) or iscoroutinefunction(getattr(type(agent), "__call__", None))  # noqa: B004  # that of its class


def check_agents(agents: Mapping[str, Agent]) -> None:
    for name, agent in agents.items():
        if not is_agent(agent):
            raise BadUsage(
                f"the agent '{name}' is not an async function", "async def agent(state, record): …"
            )
