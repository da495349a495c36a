"""`reduce(state, recorded) -> state`: the only writer of state. A chat is the fold of its log."""

from collections.abc import Iterable
from typing import assert_never

from msgspec.structs import replace

from septet.domain.approvals import asks_nothing
from septet.domain.events import (
    AnswerGiven,
    BaseEvent,
    BaseMoved,
    BaseSurveyed,
    BudgetReached,
    ChatContinued,
    ChatEnded,
    ChatEvent,
    ChatHalted,
    ChatStarted,
    DataDescribed,
    DecisionRecorded,
    Delivered,
    DeliveryStarted,
    Event,
    EvidenceFound,
    ExampleGiven,
    FactsChanged,
    GroupEvent,
    ModelAnswered,
    PackageEvent,
    PackagesDecided,
    PackagesInstalled,
    PackagesWanted,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    Recorded,
    ReplyRefused,
    ReviewGiven,
    RunFinished,
    RunStarted,
    SnapshotTaken,
    SpeakerChosen,
    StepGranted,
    StopEvent,
    StopRequested,
    TalkEvent,
    Terminated,
    ToolAnswered,
    ToolCalled,
    ToolEvent,
    TurnOpened,
    VersionWritten,
    WorkAccepted,
    WorkEvent,
)
from septet.domain.examples import signature
from septet.domain.facts import apply_change
from septet.domain.files import ANY, FileRef
from septet.domain.plans import Wish, plan_digest
from septet.domain.runs import CONTROLS
from septet.domain.state import Base, Spending, State, Turn

ALL_STEPS = 1 << 53
"""More than any chat takes."""


def fold(recorded: Iterable[Recorded], state: State | None = None) -> State:
    """Everything the events say, on top of what is known already."""
    state = state or State()
    for one in recorded:
        state = reduce(state, one)
    return state


def reduce(state: State, recorded: Recorded) -> State:
    """The state after one more event."""
    event = recorded.event
    halted = state.halted if isinstance(event, PersonSpoke) else None
    return reduce_event(replace(state, chat=recorded.chat, seq=recorded.seq, halted=halted), event)


def reduce_event(state: State, event: Event) -> State:
    """What the event says, wherever it is stored."""
    if isinstance(event, ChatEvent):
        return reduce_chat(state, event)
    if isinstance(event, TalkEvent):
        return reduce_talk(state, event)
    if isinstance(event, GroupEvent):
        return reduce_group(state, event)
    if isinstance(event, ToolEvent):
        return reduce_tools(state, event)
    if isinstance(event, PackageEvent):
        return reduce_packages(state, event)
    if isinstance(event, BaseEvent):
        return reduce_base(state, event)
    return reduce_work(state, event)


def reduce_chat(state: State, event: ChatEvent) -> State:
    match event:
        case ChatStarted(goal=goal, team=team, workspace=workspace, data=data):
            begun = replace(state, goal=goal, team=team, budget=team.budget)
            begun = replace(begun, facts=event.facts, own_facts=event.own_facts)
            return replace(begun, workspace=workspace, existing=event.existing, data=data)
        case ChatContinued(budget=budget):
            again = replace(state, budget=budget, ended=None, before_end=None, stop_requested=False)
            again = replace(again, terminated=None, budget_reached=None, spending_at_opening=state.spending)
            return replace(again, refusals=0, repeats=0, green_rejections=0, failing=0)
        case TurnOpened(speaker=speaker):
            return reduce_turn(state, speaker)
        case StepGranted(freely=freely):
            return settle_person_turn(replace(state, steps=ALL_STEPS if freely else state.steps + 1))
        case ChatHalted() | ChatEnded() | BudgetReached() | StopRequested():
            return reduce_stop(state, event)
        case _:
            assert_never(event)


def reduce_stop(state: State, event: StopEvent) -> State:
    match event:
        case ChatHalted():
            return replace(state, halted=event)
        case ChatEnded():
            # Who says once more that it has ended says nothing: the first end counts until it goes on.
            return (
                state
                if state.ended
                else replace(state, ended=event, turn=None, previous="", before_end=state)
            )
        case BudgetReached():
            return replace(state, budget_reached=event, turn=close_turn(state.turn))
        case StopRequested():
            return replace(state, stop_requested=True)
        case _:
            assert_never(event)


def reduce_turn(state: State, speaker: str) -> State:
    turns = {**state.turns, speaker: state.turns.get(speaker, 0) + 1}
    number, heard = sum(turns.values()), len(state.remarks)
    turn = Turn(speaker=speaker, number=number, opened=state.seq, heard=heard)
    before = state.turn.speaker if state.turn and state.turn.speaker != speaker else state.previous
    state = replace(state, turn=turn, turns=turns, previous=before, chosen="", results={})
    if speaker != state.team.person or state.version is None:
        return state
    return replace(state, consulted=state.version.tree, consulted_at=len(state.versions))


def reduce_talk(state: State, event: TalkEvent) -> State:
    match event:
        case ModelAnswered():
            return reduce_answer(state, event)
        case ReplyRefused(role=role, shown=shown):
            state = spoilt(saw(state, shown), role)
            return replace(state, refused=event, refusals=state.refusals + 1, turn=close_turn(state.turn))
        case PersonSpoke():
            state = replace(state, messages=state.messages.plus(event), answered=None, accepted=False)
            return settle_person_turn(reduce_words(state, event))
        case WorkAccepted():
            return settle_person_turn(replace(state, accepted=True))
        case PlanProposed(plan=plan):
            return settle_turn(
                replace(state, plan=plan, approved=False, remarks=unheard(state), met_before={})
            )
        case PlanApproved(plan=digest):
            current = state.plan is not None and plan_digest(state.plan) == digest
            return settle_person_turn(replace(state, approved=state.approved or current))
        case _:
            assert_never(event)


def reduce_group(state: State, event: GroupEvent) -> State:
    match event:
        case SpeakerChosen(speaker=speaker):
            return settle_turn(replace(state, chosen=speaker))
        case Terminated():
            return settle_turn(replace(state, terminated=event))
        case FactsChanged(by=by, change=change):
            own = (*state.own_facts, *change.add) if by == "person" else state.own_facts
            return settle_person_turn(
                replace(state, facts=apply_change(state.facts, change, own), own_facts=own)
            )
        case _:
            assert_never(event)


def reduce_work(state: State, event: WorkEvent) -> State:
    match event:
        case VersionWritten(found=found):
            state = reduce_version(wrote(state, event), event)
            return reopen_turn(state) if found else settle_turn(state)
        case RunFinished():
            return reduce_run(state, event)
        case EvidenceFound(item=item):
            return replace(state, evidence={**state.evidence, item: event})
        case ReviewGiven():
            return settle_turn(reduce_review(state, event))
        case DecisionRecorded(case=case):
            turn = state.turn and replace(state.turn, decided=True)
            return replace(state, turn=turn, diagnosis=event if case else state.diagnosis)
        case ExampleGiven():
            return settle_turn(replace(state, example=event))
        case RunStarted():
            return state
        case _:
            assert_never(event)


def reduce_tools(state: State, event: ToolEvent) -> State:
    turn = state.turn
    match event:
        case ToolCalled():
            turn = turn and replace(turn, calls=(*turn.calls, event))
            return replace(
                state, turn=turn, waiting=(*state.waiting, event), messages=state.messages.plus(event)
            )
        case ToolAnswered(id=answered, shown=shown):
            waiting = tuple(call for call in state.waiting if call.id != answered)
            results = {**state.results, answered: event}
            state = saw(state, shown)
            return replace(state, waiting=waiting, results=results, messages=state.messages.plus(event))
        case SnapshotTaken():
            turn = turn and replace(turn, snapshot=event)
            return replace(state, turn=turn, snapshots=state.snapshots.plus(event))
        case DataDescribed():
            return replace(state, cards=(*state.cards, event))
        case AnswerGiven():
            return settle_turn(replace(state, answered=event, remarks=unheard(state)))
        case _:
            assert_never(event)


def reduce_base(state: State, event: BaseEvent) -> State:
    match event:
        case BaseSurveyed():
            return replace(state, base=Base(survey=event))
        case BaseMoved():
            return replace(state, base=state.base and state.base.after_move(event))
        case DeliveryStarted() | Delivered():
            return replace(state, base=state.base and state.base.after_delivery(event))
        case _:
            assert_never(event)


def reduce_packages(state: State, event: PackageEvent) -> State:
    match event:
        case PackagesWanted(missing=missing):
            return replace(state, provisions=replace(state.provisions, wanted=missing))
        case PackagesDecided(names=names, allowed=allowed, always=always):
            return settle_person_turn(
                replace(state, provisions=state.provisions.with_decision(names, allowed, always))
            )
        case PackagesInstalled(installation=done):
            state = replace(state, provisions=state.provisions.after(done))
            return replace(state, seconds=state.seconds + done.seconds)
        case _:
            assert_never(event)


def reduce_answer(state: State, event: ModelAnswered) -> State:
    answer = event.answer
    one = Spending(answers=1, usage=answer.usage, cost=answer.cost or 0.0, seconds=answer.seconds)
    turn = state.turn and replace(state.turn, answers=(*state.turn.answers, event))
    return replace(
        state,
        turn=turn,
        messages=state.messages.plus(event),
        spending=add_spending(state, event.role, one),
        latest={**state.latest, event.role: one},
        seconds=state.seconds + answer.seconds,
    )


def took(state: State, seconds: float) -> State:
    """A program's time is that of the member whose turn it is."""
    if state.turn is None:
        return state
    return replace(state, spending=add_spending(state, state.turn.speaker, Spending(seconds=seconds)))


def add_spending(state: State, member: str, more: Spending) -> dict[str, Spending]:
    return {**state.spending, member: state.spending.get(member, Spending()).plus(more)}


def reduce_version(state: State, event: VersionWritten) -> State:
    """New code empties what was known of the old one; the same code again changes only the count."""
    found, before = event.found, state.version
    remarks = state.remarks if found else unheard(state)  # what was found answers nobody
    state = replace(state, versions=state.versions.plus(event), remarks=remarks, diagnosis=None)
    if before is not None and before.tree == event.tree:
        return replace(state, repeats=state.repeats + 1, failing=state.failing + bool(state.failure))
    return replace(
        state,
        wishes=state.wishes if found else worked_in(state, event.number),
        accepted=False,
        failure="",
        failing=state.failing if state.failure else 0,
        failed_tests=frozenset(),
        last_failed_tests=state.failed_tests or state.last_failed_tests,
        repeats=0,
        runs=(),
        evidence={},
        review=None,
        met_before={**state.met_before, **met_by(before, state)},
        failed_before=frozenset(one.item for one in state.evidence.values() if not one.passed),
        stale={**state.stale, **{path: state.artefacts.get(path, "") for path in state.created}},
        artefacts={},
        created=frozenset(),
    )


def met_by(version: VersionWritten | None, state: State) -> dict[str, int]:
    """Requirements of the plan that the version met by the evidence, and its number."""
    checks = {item.id: item.check for item in (state.plan.items if state.plan else ())}
    met = (one for one in state.evidence.values() if one.passed and checks.get(one.item) == one.check)
    return {one.item: version.number for one in met} if version else {}


def reduce_words(state: State, event: PersonSpoke) -> State:
    """Words after the approval of the plan are requirements, unless they ask for nothing."""
    if not state.approved:
        return replace(state, remarks=(*state.remarks, event))
    if asks_nothing(event.text):
        return state
    wish = Wish(id=f"W{len(state.wishes) + 1}", text=event.text, said=state.seq)
    return replace(state, remarks=(*state.remarks, event), wishes=(*state.wishes, wish))


def worked_in(state: State, version: int) -> tuple[Wish, ...]:
    """The wishes that the member whose turn it is knew have a version now."""
    opened = state.turn.opened if state.turn else 0
    return tuple(
        replace(wish, version=version) if not wish.version and wish.said < opened else wish
        for wish in state.wishes
    )


def reduce_run(state: State, event: RunFinished) -> State:
    result = event.result
    made = {change.path: change.sha256 for change in result.changes if change.kind != "deleted"}
    new = {change.path for change in result.changes if change.kind == "new"}
    gone = {change.path for change in result.changes if change.kind == "deleted"}
    return replace(
        note_failure(took(state, result.seconds), event),
        runs=(*state.runs, event),
        messages=state.messages.plus(event),
        artefacts={**state.artefacts, **made},
        created=(state.created | new | set(result.others)) - gone,
        expected=expected_after(state, event),
        seconds=state.seconds + result.seconds,
    )


def saw(state: State, shown: Iterable[FileRef]) -> State:
    """The person's files as they are: what is shown, or found in the folder, is not the team's own."""
    files = {file.path: (file.sha256,) for file in shown}
    return replace(state, expected={**state.expected, **files}, borrowed=state.borrowed | files.keys())


def wrote(state: State, version: VersionWritten) -> State:
    """Until a run shows that the version is on disk, what was there before may still be; "" is no file."""
    before = {file.path: file.sha256 for file in (state.version.files if state.version else ())}
    written = [file for file in version.files if before.get(file.path) != file.sha256]
    if version.found:
        return saw(state, written)
    known = state.expected
    news = {file.path: (*known.get(file.path, ("",)), file.sha256) for file in written}
    return replace(state, expected={**known, **news})


def expected_after(state: State, run: RunFinished) -> dict[str, tuple[str, ...]]:
    """The version was on disk when its first run began; what runs make of its files is nobody's edit."""
    files = {file.path: file.sha256 for file in (state.version.files if state.version else ())}
    begun = {} if state.runs else {path: (digest,) for path, digest in files.items()}
    altered = [change for change in run.result.changes if change.path in files]
    after = {
        one.path: (files[one.path], "" if one.kind == "deleted" else one.sha256 or ANY) for one in altered
    }
    return {**state.expected, **begun, **after}


def note_failure(state: State, run: RunFinished) -> State:
    """The first failure of a version is what it is known by; the same one again is counted.

    Fewer failing tests than before are progress, and others are another failure: the count begins anew.
    """
    state = known_failure(state, run)
    if run.purpose != "tests":
        return state
    failed, before = frozenset(run.result.report.failed), state.last_failed_tests
    better = bool(failed and before) and (len(failed) < len(before) or failed.isdisjoint(before))
    return replace(state, failed_tests=failed, failing=1 if better else state.failing)


def known_failure(state: State, run: RunFinished) -> State:
    if run.result.succeeded or run.purpose in CONTROLS or state.failure:
        return state
    failure = signature(run.result)
    failing = state.failing + 1 if failure == state.last_failure else 1
    return replace(state, failure=failure, last_failure=failure, failing=failing)


def reduce_review(state: State, event: ReviewGiven) -> State:
    """The person's remarks are in the review now, where the coder will read them."""
    return replace(
        state,
        review=event,
        reviews=state.reviews.plus(event),
        remarks=unheard(state),
        green_rejections=state.green_rejections + 1 if event.green and event.verdict == "revise" else 0,
    )


def settle_turn(state: State) -> State:
    """The turn has brought what it was opened for, which ends a row of refusals too."""
    return replace(state, turn=close_turn(state.turn), refused=None, refusals=0)


def reopen_turn(state: State) -> State:
    """What was found in the folder comes before the member's own work: its turn was no round."""
    turn = state.turn
    member = next((one for one in state.team.members if turn and one.name == turn.speaker), None)
    state = replace(state, turn=close_turn(turn))
    return spoilt(state, member.name) if member and member.role != "runner" else state


def spoilt(state: State, member: str) -> State:
    """A turn that brought nothing of the member's own."""
    turns = {**state.refused_turns, member: state.refused_turns.get(member, 0) + 1}
    return replace(state, refused_turns=turns)


def settle_person_turn(state: State) -> State:
    """Whatever the person says settles a turn that was the person's."""
    asked = state.turn is not None and state.turn.speaker == state.team.person
    return replace(state, turn=close_turn(state.turn)) if asked else state


def close_turn(turn: Turn | None) -> Turn | None:
    return turn and replace(turn, settled=True)


def unheard(state: State) -> tuple[PersonSpoke, ...]:
    """Remarks made after the turn opened: the member has not seen them."""
    return state.remarks[state.turn.heard :] if state.turn else state.remarks
