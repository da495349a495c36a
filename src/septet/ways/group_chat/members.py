"""A member of a group chat: it hears everything that was said and adds one message a turn."""

from septet.agents.replies import Brief, saying
from septet.domain.messages import Message
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Bus, Model
from septet.ways.group_chat.policy import talk_briefing


def briefed_for_talk(member: RoleSpec) -> Brief:
    async def brief(state: State) -> tuple[Message, ...]:
        return talk_briefing(member, state)

    return brief


def talking(member: RoleSpec, model: Model, bus: Bus) -> Agent:
    return saying(member, model, bus, briefed_for_talk(member), settle=None)
