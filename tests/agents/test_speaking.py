"""Members that think with a model: what becomes of an answer that they cannot mean."""

import pytest
from team.states import STARTED, chat, planned

from septet.agents.pairing import managing
from septet.agents.speaking import speaking
from septet.agents.talking import talking
from septet.buses.memory import MemoryBus
from septet.domain.events import Event, ModelAnswered, ReplyRefused, TurnOpened
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.models.scripted import Script, ScriptedCall, ScriptedModel, ScriptedTurn
from septet.ports import Agent, Last
from septet.stores.memory import MemoryBlobs

pytestmark = pytest.mark.anyio

CALLS = (ScriptedCall(name="read_file", arguments={"path": "add.py"}), ScriptedCall(name="run"))


def agent_of(member: RoleSpec, turn: ScriptedTurn) -> Agent:
    model, bus = ScriptedModel(Script(turns=(turn,)), "calling"), MemoryBus()
    match member.role:
        case "writer":
            return talking(member, model, bus)
        case "manager":
            return managing(member, model, bus)
        case _:
            return speaking(member, model, bus, MemoryBlobs())


async def events_of(agent: Agent, state: State) -> list[Event]:
    return [event.event if isinstance(event, Last) else event async for event in agent(state)]


@pytest.mark.parametrize("role", ["planner", "coder", "reviewer", "manager", "writer"])
@pytest.mark.parametrize("words", ["", "I look at the file first."])
async def test_a_tool_call_of_a_member_without_tools_is_answered(role: str, words: str) -> None:
    member = RoleSpec(name=role, role=role)
    begun = [STARTED] if role in ("planner", "manager", "writer") else planned()
    state = chat([*begun, TurnOpened(speaker=role)])
    said, refused = await events_of(agent_of(member, ScriptedTurn(role=role, say=words, calls=CALLS)), state)
    assert isinstance(said, ModelAnswered)
    assert refused == ReplyRefused(
        role=role, reason="you have no tools here: read_file and run were not called; reply in text"
    )


async def test_an_empty_message_is_asked_for_again() -> None:
    writer = RoleSpec(name="writer", role="writer")
    state = chat([STARTED, TurnOpened(speaker="writer")])
    _, refused = await events_of(agent_of(writer, ScriptedTurn(role="writer", say="  ")), state)
    assert refused == ReplyRefused(role="writer", reason="the message is empty")
