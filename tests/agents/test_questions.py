"""Who answers a member's question, what the planner is told of it, and what an answer may not give away."""

from collections.abc import AsyncGenerator, Sequence

import pytest
from msgspec.structs import replace
from team.states import STARTED, chat, planned

from septet.agents.questions import (
    MOST_QUESTIONS,
    ask_person,
    is_unattended,
    may_ask,
    or_planner,
    planner_answers,
    tells_held_back,
)
from septet.domain.events import (
    Event,
    MemberBriefed,
    ModelAnswered,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    StopRequested,
    ToolAnswered,
    ToolCalled,
    TurnOpened,
)
from septet.domain.messages import Answer, Message, Request, ToolCall, ToolOffer
from septet.domain.plans import CommandSucceeds, Plan, Requirement, plan_digest
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.models.wrappers.streams import Item
from septet.ports import Agent
from septet.runtime.bus import MemoryBus
from septet.team.questions import NO_ANSWER
from septet.ways.table import TEAMS

pytestmark = pytest.mark.anyio


def asked(number: int = 1, question: str = "Tabs?", by: str = "coder", name: str = "ask") -> ToolCalled:
    arguments = f'{{"question": "{question}"}}'
    return ToolCalled(id=f"9.1.{number}", by=by, name=name, arguments=arguments, call=f"c{number}")


CALL = asked()


def before(*events: Event) -> list[Event]:
    return [*planned(), TurnOpened(speaker="coder"), *events]


class Log:
    def __init__(self, *events: Event) -> None:
        self.events = before(*events)
        self.start = len(self.events)

    @property
    def state(self) -> State:
        return chat(self.events)

    @property
    def new(self) -> list[Event]:
        return self.events[self.start :]

    async def record(self, event: Event) -> State:
        self.events.append(event)
        return self.state


def says(*answers: Event | None) -> Agent:
    left = [*answers]

    async def turn(state: State, record: object) -> Event | None:
        return left.pop(0)

    return turn


def records(event: Event) -> Agent:
    async def turn(state: State, record: object) -> Event | None:
        await record(event)  # pyright: ignore[reportCallIssue, reportUnknownVariableType, reportGeneralTypeIssues]  # an agent's record
        return None

    return turn


@pytest.mark.parametrize(
    ("changes", "unattended"),
    [
        ({"approve": "auto"}, True),
        ({"approve": "auto", "stepwise": True}, False),
        ({"approve": "auto", "consult": True}, False),
        ({"approve": "plan"}, False),
    ],
)
def test_nobody_is_there_to_ask_where_all_is_agreed_to(changes: dict[str, object], unattended: bool) -> None:
    team = TEAMS["iterate"]
    plain = replace(team, stepwise=False, consult=False)
    assert is_unattended(replace(plain, **changes)) is unattended  # pyright: ignore[reportArgumentType]  # fields of a team


def test_a_member_may_ask_so_often_and_something() -> None:
    calls = [asked(number) for number in range(1, MOST_QUESTIONS + 2)]
    others = [asked(50, by="planner"), asked(51, name="read")]
    assert may_ask(chat(before(*others, *calls[:-1])), calls[-2])
    assert not may_ask(chat(before(*calls)), calls[-1])
    assert not may_ask(chat(before(asked(question=" "))), asked(question=" "))
    assert not may_ask(chat(before(replace(CALL, arguments="{"))), replace(CALL, arguments="{"))


async def test_a_persons_answer_is_recorded_and_an_answer_of_none_is_one() -> None:
    answer = ToolAnswered(id=CALL.id, text="Yes.")
    given = Log(CALL)
    state = await ask_person(says(answer), given.state, given.record, CALL)
    assert (given.new, state.talk.tool_results[CALL.id]) == ([answer], answer)
    silent = Log(CALL)
    await ask_person(says(None), silent.state, silent.record, CALL)
    assert silent.new == [ToolAnswered(id=CALL.id, text=NO_ANSWER)]
    written = Log(CALL)
    await ask_person(records(answer), written.state, written.record, CALL)
    assert written.new == [answer]


async def test_other_words_of_the_persons_are_no_answer_and_a_stop_ends_the_wait() -> None:
    log, answer = Log(CALL), ToolAnswered(id=CALL.id, text="Yes.")
    await ask_person(says(PersonSpoke(text="wait"), answer), log.state, log.record, CALL)
    assert log.new == [PersonSpoke(text="wait"), answer]
    stopped = Log(CALL)
    await ask_person(says(StopRequested()), stopped.state, stopped.record, CALL)
    assert stopped.new == [StopRequested()]
    known = Log(CALL, answer)
    await ask_person(says(), known.state, known.record, CALL)
    assert known.new == []


async def test_the_planner_is_asked_only_if_the_person_says_nothing() -> None:
    none, mine = ToolAnswered(id=CALL.id, text=NO_ANSWER), ToolAnswered(id=CALL.id, text="Yes.")
    log = Log(CALL)
    for person, planner, last in (
        (mine, None, mine),
        (none, mine, mine),
        (none, None, none),
        (None, mine, None),
        (PersonSpoke(text=NO_ANSWER), mine, PersonSpoke(text=NO_ANSWER)),
    ):
        assert await or_planner(says(person), says(planner))(log.state, log.record) == last


class Model:
    def __init__(self, *answers: Answer) -> None:
        self._answers = [*answers]
        self.asked = 0

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        self.asked += 1
        yield self._answers.pop(0)


async def messages(state: State) -> tuple[Message, ...]:
    return (Message(role="user", text="go"),)


async def offers() -> tuple[ToolOffer, ...]:
    return ()


async def planner(model: Model, log: Log) -> Event | None:
    spec = RoleSpec(name="planner", role="planner")
    return await planner_answers(spec, model, MemoryBus(), messages, offers)(log.state, log.record)


async def test_the_planner_answers_in_its_own_thread() -> None:
    log, model = Log(CALL), Model(Answer(text=" Use tabs. "))
    assert await planner(model, log) == ToolAnswered(
        id=CALL.id, text="Use tabs.", summary="the coder asks: Tabs? → Use tabs."
    )
    briefed, said = log.new
    assert isinstance(briefed, MemberBriefed)
    assert (briefed.member, briefed.text.split("\n")[:2]) == ("planner", ["# The coder asks", "Tabs?"])
    assert isinstance(said, ModelAnswered)
    assert said.role == "planner"
    assert await planner(Model(), Log()) is None


@pytest.mark.parametrize(
    "answer", [Answer(text=" "), Answer(text="x", calls=(ToolCall(id="c", name="n", arguments=""),))]
)
async def test_no_words_or_calls_are_no_answer(answer: Answer) -> None:
    assert await planner(Model(answer), Log(CALL)) is None


async def test_an_answer_that_was_bought_before_a_crash_is_used_again() -> None:
    briefed = MemberBriefed(member="planner", text="# The coder asks")
    bought = ModelAnswered(role="planner", answer=Answer(text="Use tabs."))
    other = ModelAnswered(role="reviewer", answer=Answer(text="No."))
    log, model = Log(bought, CALL, briefed, other, bought), Model()
    last = await planner(model, log)
    assert isinstance(last, ToolAnswered)
    assert (last.text, log.new, model.asked) == ("Use tabs.", [], 0)
    half, again = Log(bought, CALL, briefed), Model(Answer(text="Use tabs."))
    await planner(again, half)
    assert [type(event) for event in half.new] == [ModelAnswered]


def stated(*checks: CommandSucceeds) -> Sequence[Event]:
    plan = Plan(
        items=tuple(
            Requirement(id=f"P{number}", text="x", check=check)
            for number, check in enumerate(checks, start=1)
        ),
        run="python a.py",
    )
    return [STARTED, PlanProposed(plan=plan), PlanApproved(plan=plan_digest(plan))]


def test_an_answer_must_not_give_away_what_is_held_back() -> None:
    held = CommandSucceeds(command="python a.py 7 8", prints="15", held=True)
    state = chat(stated(CommandSucceeds(command="python a.py 1 2", prints="3"), held))
    assert tells_held_back(state, "It is checked by `python a.py 7 8`.")
    assert not tells_held_back(state, "It is checked by `python a.py 1 2`.")
    assert not tells_held_back(chat(stated(replace(held, held=False))), "python a.py 7 8")
