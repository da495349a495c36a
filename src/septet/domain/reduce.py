"""`reduce(state, recorded) -> state`: the only writer of state. A chat is the fold of its log."""

from collections.abc import Iterable
from typing import assert_never

from msgspec.structs import replace

from septet.domain.events import (
    ChatContinued,
    ChatEnded,
    ChatEvent,
    ChatStarted,
    DecisionRecorded,
    EvidenceFound,
    ModelAnswered,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    Recorded,
    ReplyRefused,
    ReviewGiven,
    RunFinished,
    RunStarted,
    StepGranted,
    StopRequested,
    TalkEvent,
    TurnOpened,
    VersionWritten,
    WorkEvent,
)
from septet.domain.plans import plan_digest
from septet.domain.state import Spending, State, Turn


def fold(recorded: Iterable[Recorded], state: State | None = None) -> State:
    """Everything the events say, on top of what is known already."""
    state = state or State()
    for one in recorded:
        state = reduce(state, one)
    return state


def reduce(state: State, recorded: Recorded) -> State:
    """The state after one more event."""
    event = recorded.event
    if isinstance(event, ChatEvent):
        state = reduce_chat(state, event)
    elif isinstance(event, TalkEvent):
        state = reduce_talk(state, event)
    else:
        state = reduce_work(state, event)
    return replace(state, chat=recorded.chat, seq=recorded.seq)


def reduce_chat(state: State, event: ChatEvent) -> State:
    match event:
        case ChatStarted(goal=goal, team=team, workspace=workspace):
            return replace(state, goal=goal, team=team, budget=team.budget, workspace=workspace)
        case ChatContinued(budget=budget):
            return replace(state, budget=budget, ended=None, stop_requested=False, refusals=0, repeats=0)
        case ChatEnded():
            return replace(state, ended=event, turn=None)
        case TurnOpened(speaker=speaker):
            turns = {**state.turns, speaker: state.turns.get(speaker, 0) + 1}
            turn = Turn(speaker=speaker, number=sum(turns.values()), heard=len(state.remarks))
            return replace(state, turn=turn, turns=turns)
        case StepGranted():
            return replace(state, steps=state.steps + 1)
        case StopRequested():
            return replace(state, stop_requested=True)
        case _:
            assert_never(event)


def reduce_talk(state: State, event: TalkEvent) -> State:
    match event:
        case ModelAnswered():
            return reduce_answer(state, event)
        case ReplyRefused():
            return replace(state, turn=closed(state.turn), refused=event, refusals=state.refusals + 1)
        case PersonSpoke():
            return replace(state, remarks=(*state.remarks, event), messages=state.messages.plus(event))
        case PlanProposed(plan=plan):
            return settled(replace(state, plan=plan, approved=False, remarks=unheard(state)))
        case PlanApproved(plan=digest):
            current = state.plan is not None and plan_digest(state.plan) == digest
            return replace(state, approved=state.approved or current)
        case _:
            assert_never(event)


def reduce_work(state: State, event: WorkEvent) -> State:
    match event:
        case VersionWritten():
            return settled(reduce_version(state, event))
        case RunFinished(result=result):
            made = {change.path: change.sha256 for change in result.changes if change.kind != "deleted"}
            return replace(
                state,
                runs=(*state.runs, event),
                artefacts={**state.artefacts, **made},
                seconds=state.seconds + result.seconds,
            )
        case EvidenceFound(item=item):
            return replace(state, evidence={**state.evidence, item: event})
        case ReviewGiven():
            return settled(replace(state, review=event, reviews=state.reviews.plus(event)))
        case RunStarted() | DecisionRecorded():
            return state
        case _:
            assert_never(event)


def reduce_answer(state: State, event: ModelAnswered) -> State:
    answer = event.answer
    before = state.spending.get(event.role, Spending())
    after = Spending(
        answers=before.answers + 1,
        usage=before.usage.plus(answer.usage),
        cost=before.cost + (answer.cost or 0.0),
    )
    turn = state.turn and replace(state.turn, answers=(*state.turn.answers, event))
    return replace(
        state,
        turn=turn,
        messages=state.messages.plus(event),
        spending={**state.spending, event.role: after},
        seconds=state.seconds + answer.seconds,
    )


def reduce_version(state: State, event: VersionWritten) -> State:
    """New code empties what was known of the old one; the same code again changes only the count."""
    state = replace(state, versions=state.versions.plus(event), remarks=unheard(state))
    if len(state.versions) > 1 and state.versions[-2].tree == event.tree:
        return replace(state, repeats=state.repeats + 1)
    met = {item for item, found in state.evidence.items() if found.passed}
    return replace(
        state,
        repeats=0,
        runs=(),
        evidence={},
        review=None,
        met_before=state.met_before | met,
        stale={**state.stale, **state.artefacts},
        artefacts={},
    )


def settled(state: State) -> State:
    """The turn has brought what it was opened for, which ends a row of refusals too."""
    return replace(state, turn=closed(state.turn), refused=None, refusals=0)


def closed(turn: Turn | None) -> Turn | None:
    return turn and replace(turn, settled=True)


def unheard(state: State) -> tuple[PersonSpoke, ...]:
    """Remarks made after the turn opened: the member has not seen them."""
    return state.remarks[state.turn.heard :] if state.turn else state.remarks
