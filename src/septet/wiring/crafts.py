"""Members whose way of working depends on the team's floor: the autocoder's runner and coder."""

from septet.agents.runner import Bench
from septet.domain.events import Event
from septet.domain.state import State
from septet.domain.teams import RoleSpec, TeamSpec
from septet.ports import Agent, Record
from septet.tools.actions import file_actions, known_actions
from septet.tools.registry import toolbox
from septet.ways.assistant.members import assisting
from septet.ways.autocoder.members import acting, reasoning
from septet.ways.group_chat.members import briefed_for_talk, talking
from septet.ways.pair.members import briefed, managing, pairing, running_newest
from septet.wiring.mcp import McpServers
from septet.wiring.models import Models


def craft(
    member: RoleSpec, team: TeamSpec, models: Models, bench: Bench, foreign: McpServers | None = None
) -> Agent | None:
    """The agent for such a member; None for one that works as in any team."""
    if team.floor == "reason_and_act":
        return autocoder_craft(member, models, bench)
    if team.floor == "direct":
        return assistant_craft(member, models, bench, foreign)
    if team.floor == "group_chat":
        return group_craft(member, models, bench)
    if team.floor == "pair":
        return pair_craft(member, models, bench)
    return None


def group_craft(member: RoleSpec, models: Models, bench: Bench) -> Agent | None:
    """Everybody talks; besides, a manager gives the floor, a coder's code is kept and a runner runs it."""
    if member.role in ("proxy", "exemplar"):
        return None
    if member.role == "runner":
        return running_newest(member, bench)
    model = models.open(member.model)
    if member.role == "manager":
        return managing(member, model, bench.bus, briefed_for_talk(member))
    if member.role == "coder":
        return pairing(member, model, bench.bus, bench.blobs, talks=True)
    return talking(member, model, bench.bus)


def pair_craft(member: RoleSpec, models: Models, bench: Bench) -> Agent | None:
    if member.role == "runner":
        return running_newest(member, bench)
    if member.role == "manager":
        return managing(member, models.open(member.model), bench.bus, briefed(member, bench.blobs))
    if member.role == "coder":
        return pairing(member, models.open(member.model), bench.bus, bench.blobs)
    return None


def assistant_craft(member: RoleSpec, models: Models, bench: Bench, foreign: McpServers | None) -> Agent:
    """The proxy talks and does nothing else; the others have the toolbox, with the tools of foreign servers."""
    from septet.ways.assistant.tools import assistant_tools

    model = models.open(member.model)
    if member.role == "proxy":
        return assisting(member, model, bench, {})
    own = toolbox(assistant_tools())

    async def turn(state: State, record: Record) -> Event | None:
        tools = {**(await foreign.tools() if foreign else {}), **own}
        return await assisting(member, model, bench, tools)(state, record)

    return turn


def autocoder_craft(member: RoleSpec, models: Models, bench: Bench) -> Agent | None:
    if member.role == "runner":
        return reasoning(member, bench)
    if member.role == "coder":
        return acting(member, models.open(member.model), bench, known_actions(file_actions()))
    return None
