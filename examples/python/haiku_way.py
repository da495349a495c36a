"""A way of working from outside of the package: a poet writes lines until there are three."""

from septet.agents.replies import one_answer_agent
from septet.domain.messages import Message
from septet.domain.state import State
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.ports import Agent
from septet.team.floor import End, Floor, Speak, rounds_of
from septet.ways.way import MemberContext, Way


def floor(team: TeamSpec, budget: Budget) -> Floor:
    return lambda state: End(reason="answered") if rounds_of(state, "poet") == 3 else Speak(speaker="poet")


def member(spec: RoleSpec, context: MemberContext) -> Agent:
    async def brief(state: State) -> tuple[Message, ...]:
        return (Message(role="user", text=f"One line of a haiku about {state.goal}."),)

    return one_answer_agent(spec, context.open_model(spec.model), context.run_context.bus, brief, None)


TEAM = TeamSpec(name="haiku", members=(RoleSpec(name="poet", role="poet"),), floor="haiku")
WAY = Way(name="haiku", floor=floor, member=member, thinks=("poet",), is_talk=True, teams=(TEAM,))
