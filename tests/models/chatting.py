"""A real ten-turn chat between two members over a real socket: what the fault tests break."""

import msgspec

from septet.domain.events import ChatStarted, ModelAnswered
from septet.domain.messages import Answer, Message, Request, ToolOffer
from septet.domain.state import Spending, State
from septet.domain.teams import RoleSpec, TeamSpec
from septet.ports import Agent, EventStore, Model, Record
from septet.runtime.conductor import perform
from septet.runtime.log import Log
from septet.team.floor import at_most
from septet.testing.replies import ReceivedRequest, Reply
from septet.ways.round_robin.policy import round_robin

TURNS = 10
SPEAKERS = ("writer", "editor")
WORDS = "Zwölf Boxkämpfer jagen \U0001f98a quer über den großen Sylter Deich. " * 4


def scripted(seen: ReceivedRequest) -> Reply:
    """The answer depends on nothing but the last question: a repeated one gets the same again."""
    asked = next(text for text in reversed(texts(seen)) if text.startswith("turn "))
    return Reply(text=f"{WORDS}This answers {asked}.", piece=7)


def texts(seen: ReceivedRequest) -> list[str]:
    found: list[str] = []
    for message in seen.messages:
        content = message.get("content") or ""
        parts = [{"text": content}] if isinstance(content, str) else content
        found += [str(part.get("text", "")) for part in msgspec.convert(parts, list[dict[str, object]])]
    return found


def member(name: str, model: Model, tools: tuple[ToolOffer, ...] = ()) -> Agent:
    """Says one thing each turn, told everything that was said before."""

    async def turn(state: State, record: Record) -> None:
        assert state.floor.turn is not None
        if state.floor.turn.answers:
            return
        step = state.spending.members.get(name, Spending()).answers + 1
        request = Request(role=name, step=step, messages=told(state), tools=tools)
        async for item in model.answer(request):
            if isinstance(item, Answer):
                await record(ModelAnswered(role=name, answer=item))

    return turn


def told(state: State) -> tuple[Message, ...]:
    said = [said for said in state.talk.messages if isinstance(said, ModelAnswered)]
    history = [
        message
        for number, one in enumerate(said, start=1)
        for message in (
            Message(role="user", text=f"turn {number}"),
            Message(role="assistant", text=one.answer.text),
        )
    ]
    return (
        Message(role="system", text="You write together."),
        *history,
        Message(role="user", text=f"turn {len(said) + 1}"),
    )


async def start(store: EventStore) -> None:
    team = TeamSpec(
        name="pair",
        members=tuple(RoleSpec(name=name, role="coder") for name in SPEAKERS),
        floor="round_robin",
    )
    await store.append("chat", ChatStarted(goal="talk", team=team, workspace="."), after=0)


async def chat(store: EventStore, model: Model, tools: tuple[ToolOffer, ...] = ()) -> State:
    """Start or resume the chat and bring it to its end."""
    if not await store.read("chat"):
        await start(store)
    agents = {name: member(name, model, tools) for name in SPEAKERS}
    log = await Log.open(store, "chat")
    await perform(log, at_most(TURNS, round_robin(SPEAKERS)), agents)
    return log.state


def transcript(state: State) -> list[str]:
    return [said.answer.text for said in state.talk.messages if isinstance(said, ModelAnswered)]


def expected() -> list[str]:
    return [f"{WORDS}This answers turn {number}." for number in range(1, TURNS + 1)]
