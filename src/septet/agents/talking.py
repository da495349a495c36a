"""A member of a group chat: it hears everything that was said and adds one message a turn."""

from septet.agents.speaking import saying
from septet.domain.state import State
from septet.domain.talk import Message
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Bus, Model
from septet.team.talking import talk_briefing


def talking(member: RoleSpec, model: Model, bus: Bus) -> Agent:
    async def brief(state: State) -> tuple[Message, ...]:
        return talk_briefing(member, state)

    return saying(member, model, bus, brief, settle=None)
