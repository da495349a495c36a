"""A member of a group chat: it reads all messages and adds one per turn."""

from septet.agents.replies import Brief, one_answer_agent
from septet.domain.messages import Message
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Bus, Model
from septet.team.graph import edges_of
from septet.ways.group_chat.policy import talk_briefing
from septet.ways.way import MemberContext

WORKING_ROLES = frozenset({"proxy", "exemplar", "runner", "manager", "coder"})
"""The roles of members that do more than talk."""


def briefed_for_talk(member: RoleSpec) -> Brief:
    async def brief(state: State) -> tuple[Message, ...]:
        return talk_briefing(member, state)

    return brief


def talk_agent(member: RoleSpec, model: Model, bus: Bus) -> Agent:
    return one_answer_agent(member, model, bus, briefed_for_talk(member), settle=None)


def may_end(state: State) -> bool:
    """Whether the chat may end: the newest code has run successfully, or there is no code."""
    if state.work.version is None:
        return True
    from septet.ways.pair.members import ran_well

    return ran_well(state)


def member(spec: RoleSpec, context: MemberContext) -> Agent:
    """The agent of a member: a manager also gives the floor, a coder's code is stored, and a runner runs it."""
    if spec.role in WORKING_ROLES:
        return working_member(spec, context)
    return talk_agent(spec, context.open_model(spec.model), context.bus)


def working_member(spec: RoleSpec, context: MemberContext) -> Agent:
    """The agent of a member with one of these roles; what it works with is not imported for a talk."""
    from septet.ways.iterate.members import member as team_member
    from septet.ways.pair.members import coder_agent, manager_agent, running_newest

    run_context = context.run_context
    match spec.role:
        case "proxy" | "exemplar":
            return team_member(spec, context)
        case "runner":
            return running_newest(spec, run_context)
        case "manager":
            brief, edges = briefed_for_talk(spec), edges_of(context.team)
            return manager_agent(spec, context.open_model(spec.model), run_context.bus, brief, edges, may_end)
        case _:
            model = context.open_model(spec.model)
            return coder_agent(spec, model, run_context.bus, run_context.blobs, talks=True)
