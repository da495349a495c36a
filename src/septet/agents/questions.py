"""Who answers what a member asks in its turn: the person or, where nobody may be asked, the planner."""

from collections.abc import Awaitable, Callable

from septet.agents.ask import ask_model
from septet.domain.events import Event, MemberBriefed, ModelAnswered, ToolAnswered, ToolCalled
from septet.domain.messages import Message, ToolOffer
from septet.domain.plans import HoldableCheck, input_of
from septet.domain.state import State
from septet.domain.teams import RoleSpec, TeamSpec
from septet.ports import Agent, Bus, Model, Record
from septet.team.questions import NO_ANSWER, asked_text, open_ask

MOST_QUESTIONS = 5
"""To the person, of one member in a chat: a model that asks on and on would never be ready."""
TO_PLANNER = """\
# The {0} asks
{1}

Nobody else can be asked. Answer in a few words, by the goal and your plan, without a call.
What is held back stays so."""
Messages = Callable[[State], Awaitable[tuple[Message, ...]]]
Offers = Callable[[], Awaitable[tuple[ToolOffer, ...]]]


def is_unattended(team: TeamSpec) -> bool:
    """Whether the team agrees to everything by itself: nobody is there to ask."""
    return team.approve == "auto" and not (team.stepwise or team.consult)


def may_ask(state: State, call: ToolCalled) -> bool:
    """Whether somebody is asked; else the tool itself answers."""
    asked = [said for said in state.talk.messages if isinstance(said, ToolCalled) and said.by == call.by]
    return sum(one.name == call.name for one in asked) <= MOST_QUESTIONS and bool(asked_text(call))


async def ask_person(person: Agent, state: State, record: Record, call: ToolCalled) -> State:
    """Wait until an answer to the call is in the log, or the person stops the work."""

    async def record_answer(event: Event) -> State:
        nonlocal state
        state = await record(event)
        return state

    while call.id not in state.talk.tool_results and not state.stop_requested:
        before = state.seq
        last = await person(state, record_answer)
        if last is not None or state.seq == before:
            state = await record(last or ToolAnswered(id=call.id, text=NO_ANSWER))
    return state


def or_planner(person: Agent, planner: Agent) -> Agent:
    """The person, and the planner if the person's answer is none."""

    async def turn(state: State, record: Record) -> Event | None:
        last = await person(state, record)
        if isinstance(last, ToolAnswered) and last.text == NO_ANSWER:
            return await planner(state, record) or last
        return last

    return turn


def planner_answers(spec: RoleSpec, model: Model, bus: Bus, messages: Messages, offers: Offers) -> Agent:
    """The planner answers in its own thread. After a crash an answer that was bought is used again."""

    async def turn(state: State, record: Record) -> Event | None:
        call = open_ask(state)
        if call is None:
            return None
        said = bought_answer(state, call, spec.name)
        if said is None:
            if not is_briefed(state, call, spec.name):
                text = TO_PLANNER.format(call.by, asked_text(call))
                state = await record(MemberBriefed(member=spec.name, text=text))
            said = await ask_model(spec, model, bus, state, await messages(state), await offers())
            state = await record(said)
        words = said.answer.text.strip()
        if not words or said.answer.calls or tells_held_back(state, words):
            return None
        return ToolAnswered(
            id=call.id, text=words, summary=f"the {call.by} asks: {asked_text(call)} → {words}"
        )

    return turn


def since_call(state: State, call: ToolCalled) -> list[object]:
    """What was said since the call."""
    said = list(state.talk.messages)
    place = next(place for place, one in enumerate(said) if isinstance(one, ToolCalled) and one.id == call.id)
    return [*said[place + 1 :]]


def is_briefed(state: State, call: ToolCalled, member: str) -> bool:
    return any(isinstance(one, MemberBriefed) and one.member == member for one in since_call(state, call))


def bought_answer(state: State, call: ToolCalled, member: str) -> ModelAnswered | None:
    answers = (one for one in since_call(state, call) if isinstance(one, ModelAnswered))
    return next((one for one in answers if one.role == member), None)


def tells_held_back(state: State, words: str) -> bool:
    """Whether the answer has the input of a check that the asking member must not see."""
    checks = [item.check for item in state.plan.items if isinstance(item.check, HoldableCheck)]
    return any(one.held and input_of(one) in words for one in checks)
