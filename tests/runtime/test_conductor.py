"""The loop by itself: what is stored when, and what a move is made from."""

import anyio
import pytest

from septet.domain.events import (
    ChatEnded,
    ChatStarted,
    DecisionRecorded,
    Event,
    ModelAnswered,
    PersonSpoke,
    Recorded,
    StopRequested,
    TurnOpened,
)
from septet.domain.messages import Answer
from septet.domain.state import State
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.errors import BadConfig, Conflict
from septet.ports import EventStore, Record
from septet.runtime.conductor import Agents, check_ended, perform
from septet.runtime.log import Listen, Log, no_listener
from septet.stores.memory import MemoryStore
from septet.ways.table import floor_for

pytestmark = pytest.mark.anyio

MEMBERS = tuple(RoleSpec(name=name, role="coder") for name in ("ada", "bob"))
TEAM = TeamSpec(name="talk", members=MEMBERS, floor="round_robin", budget=Budget(rounds=4))
FLOOR = floor_for(TEAM, TEAM.budget)


def said(name: str) -> ModelAnswered:
    return ModelAnswered(role=name, answer=Answer(text=f"I am {name}"))


async def speak(state: State, record: Record) -> Event:
    assert state.floor.turn is not None
    return said(state.floor.turn.speaker)


async def speak_and_stop(state: State, record: Record) -> None:
    """The same, by one who does not say that nothing more will come."""
    assert state.floor.turn is not None
    await record(said(state.floor.turn.speaker))


async def conduct(store: EventStore, agents: Agents, listen: Listen = no_listener) -> State:
    log = await Log.open(store, "talk", listen)
    await perform(log, FLOOR, agents)
    check_ended(log.state, agents)
    return log.state


async def begin(store: EventStore) -> None:
    await store.append("talk", ChatStarted(goal="talk", team=TEAM, workspace=""), after=0)


async def events(store: EventStore) -> list[Event]:
    return [recorded.event for recorded in await store.read("talk")][1:]


def conversation(turns: int) -> list[Event]:
    names = [("ada", "bob")[turn % 2] for turn in range(turns)]
    return [event for name in names for event in (TurnOpened(speaker=name, role="coder"), said(name))]


@pytest.mark.parametrize("agent", [speak, speak_and_stop])
async def test_whether_an_agent_says_that_it_has_ended_makes_no_difference_to_the_log(agent: object) -> None:
    store = MemoryStore()
    await begin(store)
    agents: Agents = {"ada": speak, "bob": speak if agent is speak else speak_and_stop}

    heard: list[Event] = []

    async def listen(recorded: Recorded) -> None:
        heard.append(recorded.event)

    state = await conduct(store, agents, listen)

    ended = ChatEnded(reason="bound", detail="4 rounds are used up", by="bob")
    assert await events(store) == heard == [*conversation(4), ended]
    assert state.ended == ended
    assert len(state.talk.messages) == 4


async def test_a_stop_that_comes_during_the_last_event_of_a_turn_is_heard_before_the_next_is_opened() -> None:
    store = MemoryStore()
    await begin(store)

    async def interrupted(state: State, record: Record) -> Event:
        await store.append("talk", StopRequested(), after=None)
        return said("bob")

    state = await conduct(store, {"ada": speak, "bob": interrupted})

    assert state.ended is not None
    assert state.ended.reason == "stopped"
    assert await events(store) == [*conversation(2)[:3], StopRequested(), said("bob"), state.ended]


async def test_an_agent_knows_its_own_event_and_what_the_person_said_before_it() -> None:
    store = MemoryStore()
    await begin(store)
    known: list[tuple[bool, list[str]]] = []

    async def decide(state: State, record: Record) -> Event:
        await store.append("talk", PersonSpoke(text="be brief"), after=None)
        state = await record(DecisionRecorded(by="bob", what="talk", why="asked"))
        assert state.floor.turn is not None
        known.append((state.floor.turn.has_decision, [remark.text for remark in state.talk.remarks]))
        return said("bob")

    await conduct(store, {"ada": speak, "bob": decide})

    assert known == [(True, ["be brief"]), (True, ["be brief", "be brief"])]


async def test_of_two_who_end_the_same_turn_one_stores_the_step_and_the_other_nothing_of_it() -> None:
    store = MemoryStore()
    await begin(store)
    both = anyio.Event()
    outcomes: list[str] = []

    async def together(state: State, record: Record) -> Event:
        """Wait until both conductors are in this turn."""
        outcomes.append("there")
        if outcomes.count("there") == 2:
            both.set()
        await both.wait()
        return said("bob")

    async def run() -> None:
        try:
            await conduct(store, {"ada": speak, "bob": together})
            outcomes.append("won")
        except Conflict:
            outcomes.append("lost")

    await begin_turn_of_bob(store)
    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            tasks.start_soon(run)

    assert sorted(outcomes[2:]) in (["lost", "there", "won"], ["lost", "won"])
    ended = ChatEnded(reason="bound", detail="4 rounds are used up", by="bob")
    assert await events(store) == [*conversation(4), ended]


async def begin_turn_of_bob(store: EventStore) -> None:
    after = 1
    for event in conversation(2)[:3]:
        after = (await store.append("talk", event, after))[-1].seq


async def test_a_speaker_whom_the_team_does_not_have_is_named() -> None:
    store = MemoryStore()
    await begin(store)

    with pytest.raises(BadConfig, match="turn of 'bob'"):
        await conduct(store, {"ada": speak})

    assert await events(store) == conversation(2)[:3]
