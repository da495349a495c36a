"""`reduce(state, recorded) -> state`: the only writer of state. A chat is the fold of its log."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, assert_never

from msgspec.structs import replace

from septet.domain.approvals import asks_nothing, turn_action
from septet.domain.events import (
    AnswerGiven,
    BaseEvent,
    BaseMoved,
    BaseSurveyed,
    BudgetReached,
    ChallengeDecided,
    ChallengeEvent,
    ChatContinued,
    ChatEnded,
    ChatEvent,
    ChatHalted,
    ChatStarted,
    CheckChallenged,
    DataDescribed,
    DecisionRecorded,
    Delivered,
    DeliveryStarted,
    EnvironmentProbed,
    Event,
    EvidenceFound,
    ExampleGiven,
    FactsChanged,
    GroupEvent,
    MemberBriefed,
    ModelAnswered,
    PackageEvent,
    PackagesDecided,
    PackagesInstalled,
    PackagesWanted,
    PersonSpoke,
    PlanApproved,
    PlanEvent,
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
from septet.domain.facts import apply_change
from septet.domain.files import ANY, FileRef
from septet.domain.plans import (
    Author,
    Challenge,
    Check,
    Judged,
    Plan,
    Wish,
    check_text,
    is_held,
    plan_digest,
    signature,
)
from septet.domain.runs import DIAGNOSTIC_PURPOSES
from septet.domain.state import Base, FloorState, PlanState, Spending, SpendingState, State, Turn, WorkState
from septet.domain.teams import Budget

ALL_STEPS = 1 << 53
"""More than any chat takes."""


def fold(recorded: Iterable[Recorded], state: State | None = None) -> State:
    """Apply all events in order, starting from `state`."""
    state = state or State()
    for entry in recorded:
        state = reduce(state, entry)
    return state


def reduce(state: State, recorded: Recorded) -> State:
    """The state after one more event."""
    event = recorded.event
    halted = state.halted if isinstance(event, PersonSpoke) else None
    return reduce_event(replace(state, chat=recorded.chat, seq=recorded.seq, halted=halted), event)


def reduce_event(state: State, event: Event) -> State:
    """Return the state after an event, without sequence number and chat."""
    return reducer_of(type(event))(state, event)


@cache
def reducer_of(kind: type[Event]) -> Callable[[State, Any], State]:
    """The reducer of the group that a kind of event belongs to. Found once per kind: folds are long."""
    reducers: tuple[tuple[Any, Callable[[State, Any], State]], ...] = (
        (ChatEvent, reduce_chat),
        (TalkEvent, reduce_talk),
        (GroupEvent, reduce_group),
        (ToolEvent, reduce_tools),
        (PackageEvent, reduce_packages),
        (BaseEvent, reduce_base),
        (WorkEvent, reduce_work),
    )
    return next(reducer for group, reducer in reducers if issubclass(kind, group))


def reduce_chat(state: State, event: ChatEvent) -> State:
    match event:
        case ChatStarted(goal=goal, team=team, workspace=workspace, data=data):
            started = replace(state, goal=goal, team=team, budget=team.budget)
            started = replace(started, facts=event.facts, own_facts=event.own_facts)
            work = replace(state.work, data=data)
            return replace(started, workspace=workspace, existing=event.existing, work=work)
        case ChatContinued(budget=budget):
            return reduce_continuation(state, budget)
        case TurnOpened():
            return reduce_turn(state, event)
        case StepGranted(action=action) if action and action != turn_action(state):
            return state
        case StepGranted(freely=freely):
            granted = ALL_STEPS if freely else state.floor.granted_steps + 1
            return close_person_turn(replace(state, floor=replace(state.floor, granted_steps=granted)))
        case ChatHalted() | ChatEnded() | BudgetReached() | StopRequested():
            return reduce_stop(state, event)
        case _:
            assert_never(event)


def reduce_continuation(state: State, budget: Budget) -> State:
    """Continue after an end: clear what had stopped the chat, and restart the counters of its limits."""
    return replace(
        state,
        budget=budget,
        plan=replace(state.plan, challenges=()),
        ended=None,
        before_end=None,
        stop_requested=False,
        work=replace(state.work, unchanged_versions=0, green_rejections=0, same_failures=0),
        talk=replace(state.talk, refusals=0),
        floor=replace(state.floor, termination=None),
        spending=replace(state.spending, budget_reached=None, at_opening=state.spending.members),
    )


def reduce_stop(state: State, event: StopEvent) -> State:
    match event:
        case ChatHalted():
            return replace(state, halted=event)
        case ChatEnded():
            # A second end has no effect: the first one counts until the chat continues.
            if state.ended:
                return state
            floor = replace(state.floor, turn=None, previous_speaker="")
            return replace(state, ended=event, floor=floor, before_end=state)
        case BudgetReached():
            spending = replace(state.spending, budget_reached=event)
            return replace(state, spending=spending, floor=close_turn(state.floor))
        case StopRequested():
            return replace(state, stop_requested=True)
        case _:
            assert_never(event)


def reduce_turn(state: State, event: TurnOpened) -> State:
    floor, version, speaker = state.floor, state.work.version, event.speaker
    counts = {**floor.turn_counts, speaker: floor.turn_counts.get(speaker, 0) + 1}
    remarks = len(state.talk.remarks)
    turn = Turn(
        speaker=speaker,
        number=sum(counts.values()),
        opened_at=state.seq,
        remarks_at_opening=remarks,
        next=event.next,
    )
    before = floor.turn.speaker if floor.turn and floor.turn.speaker != speaker else floor.previous_speaker
    floor = replace(floor, turn=turn, turn_counts=counts, previous_speaker=before, chosen_speaker="")
    if version is not None and speaker == state.team.person:
        versions = len(state.work.versions)
        floor = replace(floor, consulted_tree=version.tree, versions_at_consultation=versions)
    talk = replace(state.talk, tool_results={}) if state.talk.tool_results else state.talk
    return replace(state, floor=floor, talk=talk)


def reduce_talk(state: State, event: TalkEvent) -> State:
    match event:
        case MemberBriefed():
            return reduce_briefing(state, event)
        case ModelAnswered():
            return reduce_answer(state, event)
        case ReplyRefused(role=role, shown=shown):
            talk = replace(state.talk, refused_reply=event, refusals=state.talk.refusals + 1)
            floor = close_turn(count_refused_turn(state.floor, role))
            return replace(state, work=show_files(state.work, shown), talk=talk, floor=floor)
        case PersonSpoke():
            return close_person_turn(reduce_message(state, event))
        case WorkAccepted(tree=tree):
            version = state.work.version
            newest = not tree or (version is not None and version.tree == tree)
            work = replace(state.work, accepted=state.work.accepted or newest)
            return close_person_turn(replace(state, work=work))
        case PlanProposed() | PlanApproved() | CheckChallenged() | ChallengeDecided():
            return reduce_planning(state, event)
        case _:
            assert_never(event)


def reduce_planning(state: State, event: PlanEvent) -> State:
    match event:
        case PlanProposed():
            return finish_turn(drop_known_remarks(reduce_plan(state, event)))
        case PlanApproved(plan=digest):
            plan = state.plan
            current = plan.current is not None and plan_digest(plan.current) == digest
            return close_person_turn(replace(state, plan=replace(plan, approved=plan.approved or current)))
        case CheckChallenged() | ChallengeDecided():
            return finish_turn(replace(state, plan=reduce_challenge(state.plan, event)))
        case _:
            assert_never(event)


def reduce_plan(state: State, event: PlanProposed) -> State:
    """Another plan: what was found out by checks that it has no longer is forgotten."""
    plan = event.plan
    checks = {item.id: item.check for item in plan.items}
    before = {item.id: item.check for item in state.plan.items}
    proposed = replace(
        state.plan,
        current=plan,
        approved=event.by == "manager" or (state.plan.approved and only_confirms(state.plan, event)),
        met_before={},
        confirmed=state.plan.confirmed | special_calls(state.work) | {*event.asked},
        authors=check_authors(state, plan, event.by),
        wishes=plan_wishes(state, plan),
        challenges=tuple(
            decide(one, event.by, stands=True, reason="the check is in the new plan too")
            for one in state.plan.challenges
            if checks.get(one.item) == before.get(one.item)
        ),
    )
    if state.plan.current == plan:
        return replace(state, plan=proposed)
    same_run = state.plan.current is not None and state.plan.current.run == plan.run
    return replace(state, plan=proposed, work=forget_checks(state.work, checks, same_run=same_run))


def only_confirms(before: PlanState, event: PlanProposed) -> bool:
    """Whether the approved plan stays as it is, but for examples that are held back and that the planner was asked for:
    they can only make it harder to be done.
    """
    if before.current is None or any(not wish.planned for wish in before.wishes):
        return before.current == event.plan
    kept = len(before.items)
    added = event.plan.items[kept:] if event.asked else ()
    return all(is_held(item.check) for item in added) and event.plan == replace(
        before.current, items=(*before.items, *added)
    )


def special_calls(work: WorkState) -> set[str]:
    """The calls that the program treats in a special way: the planner has been asked for examples of them."""
    return {one.call for found in work.evidence.values() for one in found.special}


def plan_wishes(state: State, plan: Plan) -> tuple[Wish, ...]:
    """The planner has looked at the wishes that it had read. They are checked if as many requirements got a check."""
    opened_at = state.floor.turn.opened_at if state.floor.turn else state.seq
    known = [(item.text, item.check) for item in state.plan.items]
    checks = [item for item in plan.items if not isinstance(item.check, Judged)]
    new = {item.text for item in checks if (item.text, item.check) not in known}
    read = [one.id for one in state.plan.wishes if not one.planned and one.said < opened_at]
    return tuple(
        replace(one, planned=True, checked=len(new) >= len(read)) if one.id in read else one
        for one in state.plan.wishes
    )


def forget_checks(work: WorkState, checks: Mapping[str, Check], *, same_run: bool) -> WorkState:
    evidence = {name: one for name, one in work.evidence.items() if checks.get(name) == one.check}
    runs = [
        run
        for run in work.runs
        if (run.purpose not in ("check", "hollow check", "check on base") or run.about in evidence)
        and (run.purpose != "run" or same_run)
    ]
    return replace(work, evidence=evidence, runs=tuple(runs), review=None)


def reduce_challenge(plan: PlanState, event: ChallengeEvent) -> PlanState:
    """Who says the same again opens it again, and it is counted."""
    known = {one.item: one for one in plan.challenges}
    old = known.get(event.item)
    match event:
        case CheckChallenged(by=by, item=item, reason=reason, instead=instead):
            times = old.times + 1 if old else 1
            known[item] = Challenge(item=item, by=by, reason=reason, instead=instead, times=times)
        case ChallengeDecided(by=by, stands=stands, reason=reason):
            if old is not None:
                known[event.item] = decide(old, by, stands=stands, reason=reason)
        case _:
            assert_never(event)
    return replace(plan, challenges=tuple(known.values()))


def decide(challenge: Challenge, by: str, *, stands: bool, reason: str) -> Challenge:
    if challenge.stands is not None:
        return challenge
    return replace(challenge, stands=stands, decided_by=by, answer=reason)


def check_authors(state: State, plan: Plan, by: Author) -> dict[str, Author]:
    """Who proposes a plan has written the checks that the plan before it had not."""
    texts = [check_text(item.check) for item in plan.items]
    return {text: state.plan.authors.get(text, by) for text in texts}


def reduce_group(state: State, event: GroupEvent) -> State:
    match event:
        case SpeakerChosen(speaker=speaker):
            return finish_turn(replace(state, floor=replace(state.floor, chosen_speaker=speaker)))
        case Terminated():
            return finish_turn(replace(state, floor=replace(state.floor, termination=event)))
        case FactsChanged(by=by, change=change):
            own = (*state.own_facts, *change.add) if by == "person" else state.own_facts
            return close_person_turn(
                replace(state, facts=apply_change(state.facts, change, own), own_facts=own)
            )
        case _:
            assert_never(event)


def reduce_work(state: State, event: WorkEvent) -> State:
    match event:
        case VersionWritten():
            return reduce_version(state, event)
        case RunFinished():
            return reduce_run(state, event)
        case EvidenceFound(item=item):
            evidence = {**state.work.evidence, item: event}
            told = (
                state.plan.told | {check_text(event.check)} if tells_input(state, event) else state.plan.told
            )
            work, plan = replace(state.work, evidence=evidence), replace(state.plan, told=told)
            return replace(state, work=work, plan=plan)
        case ReviewGiven():
            # The person's remarks are in the review now, where the coder will read them.
            reviewed = replace(state, work=reduce_review(state.work, event))
            return finish_turn(drop_known_remarks(reviewed))
        case DecisionRecorded(case=case):
            turn = state.floor.turn and replace(state.floor.turn, has_decision=True)
            work = replace(state.work, diagnosis=event) if case else state.work
            return replace(state, floor=replace(state.floor, turn=turn), work=work)
        case ExampleGiven():
            return finish_turn(replace(state, work=replace(state.work, example=event)))
        case RunStarted():
            return state
        case _:
            assert_never(event)


def reduce_tools(state: State, event: ToolEvent) -> State:
    work, talk, turn = state.work, state.talk, state.floor.turn
    match event:
        case ToolCalled():
            turn = turn and replace(turn, calls=(*turn.calls, event))
            talk = replace(talk, open_calls=(*talk.open_calls, event), messages=talk.messages.plus(event))
            return replace(state, floor=replace(state.floor, turn=turn), talk=talk)
        case ToolAnswered(id=answered, shown=shown):
            remaining = tuple(call for call in talk.open_calls if call.id != answered)
            results = {**talk.tool_results, answered: event}
            talk = replace(
                talk, open_calls=remaining, tool_results=results, messages=talk.messages.plus(event)
            )
            return replace(state, work=show_files(work, shown), talk=talk)
        case SnapshotTaken():
            turn = turn and replace(turn, snapshot=event)
            work = replace(work, snapshots=work.snapshots.plus(event))
            return replace(state, floor=replace(state.floor, turn=turn), work=work)
        case DataDescribed():
            return replace(state, work=replace(work, data_cards=(*work.data_cards, event)))
        case AnswerGiven():
            return finish_turn(drop_known_remarks(replace(state, talk=replace(talk, answer=event))))
        case _:
            assert_never(event)


def reduce_base(state: State, event: BaseEvent) -> State:
    match event:
        case BaseSurveyed():
            return replace(state, base=Base(survey=event))
        case EnvironmentProbed():
            return replace(state, environment=event)
        case BaseMoved():
            return replace(state, base=state.base and state.base.after_move(event))
        case DeliveryStarted() | Delivered():
            return replace(state, base=state.base and state.base.after_delivery(event))
        case _:
            assert_never(event)


def reduce_packages(state: State, event: PackageEvent) -> State:
    provisions = state.work.provisions
    match event:
        case PackagesWanted(missing=missing):
            provisions = replace(provisions, wanted=missing)
            return replace(state, work=replace(state.work, provisions=provisions))
        case PackagesDecided(names=names, by="person") if frozenset(names) != provisions.wanted.names:
            return state
        case PackagesDecided(names=names, allowed=allowed, always=always):
            provisions = provisions.with_decision(names, allowed, always)
            return close_person_turn(replace(state, work=replace(state.work, provisions=provisions)))
        case PackagesInstalled(installation=done):
            work = replace(state.work, provisions=provisions.after(done))
            spending = replace(state.spending, seconds=state.spending.seconds + done.seconds)
            return replace(state, work=work, spending=spending)
        case _:
            assert_never(event)


def reduce_briefing(state: State, event: MemberBriefed) -> State:
    turn = state.floor.turn
    is_own = turn is not None and turn.speaker == event.member  # another member may be asked something
    if turn and is_own and not event.shortens:  # a shortening asks nothing of the member
        turn = replace(turn, briefings=(*turn.briefings, len(turn.answers)))
    talk = replace(state.talk, messages=state.talk.messages.plus(event))
    return replace(state, talk=talk, floor=replace(state.floor, turn=turn))


def reduce_answer(state: State, event: ModelAnswered) -> State:
    answer, floor, spending = event.answer, state.floor, state.spending
    spent = Spending(answers=1, usage=answer.usage, cost=answer.cost or 0.0, seconds=answer.seconds)
    turn = floor.turn
    if turn and turn.speaker == event.role:
        floor = replace(floor, turn=replace(turn, answers=(*turn.answers, event)))
    return replace(
        state,
        floor=floor,
        talk=replace(state.talk, messages=state.talk.messages.plus(event)),
        spending=replace(
            add_spending(spending, event.role, spent),
            latest_answers={**spending.latest_answers, event.role: spent},
            seconds=spending.seconds + answer.seconds,
        ),
    )


def add_spending(spending: SpendingState, member: str, spent: Spending) -> SpendingState:
    total = spending.members.get(member, Spending()).plus(spent)
    return replace(spending, members={**spending.members, member: total})


def reduce_version(state: State, event: VersionWritten) -> State:
    """New code resets what is known of the tree; unchanged code only increases the counters."""
    found, before = event.found, state.work.version
    work = replace(write_files(state.work, event), versions=state.work.versions.plus(event), diagnosis=None)
    if before is not None and before.tree == event.tree:
        again = work.same_failures + bool(work.failure)
        # The same code, of which more is known now, is reviewed again.
        review = work.review if before.confirmation == event.confirmation else None
        work = replace(
            work, unchanged_versions=work.unchanged_versions + 1, same_failures=again, review=review
        )
        state = replace(state, work=work)
    else:
        met = {**state.plan.met_before, **met_requirements(before, state)}
        wishes = state.plan.wishes if found else assign_wishes(state, event.number)
        plan = replace(state.plan, wishes=wishes, met_before=met)
        state = replace(state, work=forget_tree(work), plan=plan)
    # A version found in the folder is not the member's work.
    return reopen_turn(state) if found else finish_turn(drop_known_remarks(state))


def tells_input(state: State, event: EvidenceFound) -> bool:
    """Whether the evidence says what a check that is held back gives: it failed before, too."""
    return is_held(event.check) and not event.passed and event.item in state.work.failed_before


def forget_tree(work: WorkState) -> WorkState:
    """Reset what is known of the tree, for new code."""
    created = {path: work.artefacts.get(path, "") for path in work.created_paths}
    return replace(
        work,
        accepted=False,
        failure="",
        same_failures=work.same_failures if work.failure else 0,
        failed_tests=frozenset(),
        last_failed_tests=work.failed_tests or work.last_failed_tests,
        unchanged_versions=0,
        runs=(),
        evidence={},
        review=None,
        failed_before=frozenset(evidence.item for evidence in work.evidence.values() if not evidence.passed),
        stale_artefacts={**work.stale_artefacts, **created},
        artefacts={},
        created_paths=frozenset(),
    )


def met_requirements(version: VersionWritten | None, state: State) -> dict[str, int]:
    """Return the requirements that the version met by the evidence, with its number."""
    checks = {item.id: item.check for item in state.plan.items}
    passed = (evidence for evidence in state.work.evidence.values() if evidence.passed)
    met = (evidence.item for evidence in passed if checks.get(evidence.item) == evidence.check)
    return dict.fromkeys(met, version.number) if version else {}


def reduce_message(state: State, event: PersonSpoke) -> State:
    """Add the person's message; after the approval of the plan it is a requirement, unless it requests nothing."""
    plan, work = state.plan, replace(state.work, accepted=False)
    talk = replace(state.talk, messages=state.talk.messages.plus(event), answer=None)
    if plan.approved and asks_nothing(event.text):
        return replace(state, work=work, talk=talk)
    if plan.approved:
        wish = Wish(id=f"W{len(plan.wishes) + 1}", text=event.text, said=state.seq)
        plan = replace(plan, wishes=(*plan.wishes, wish))
    talk = replace(talk, remarks=(*talk.remarks, event))
    return replace(state, plan=plan, work=work, talk=talk)


def assign_wishes(state: State, version: int) -> tuple[Wish, ...]:
    """Assign the version to the wishes that its coder had read."""
    opened_at = state.floor.turn.opened_at if state.floor.turn else 0
    return tuple(
        replace(wish, version=version) if not wish.version and wish.said < opened_at else wish
        for wish in state.plan.wishes
    )


def reduce_run(state: State, event: RunFinished) -> State:
    seconds, turn = event.result.seconds, state.floor.turn
    spending = replace(state.spending, seconds=state.spending.seconds + seconds)
    if turn is not None:  # a program's time is that of the member whose turn it is
        spending = add_spending(spending, turn.speaker, Spending(seconds=seconds))
    if event.purpose == "baseline" and not event.about:
        return replace(state, base=state.base and replace(state.base, baseline=event), spending=spending)
    return replace(
        state,
        work=note_run(note_failure(state.work, event), event),
        talk=replace(state.talk, messages=state.talk.messages.plus(event)),
        spending=spending,
    )


def note_run(work: WorkState, event: RunFinished) -> WorkState:
    """Add the run, and the files that it made, changed or deleted."""
    changes = event.result.changes
    if work.runs and not changes and not event.result.others:
        return replace(work, runs=(*work.runs, event))
    written = {change.path: change.sha256 for change in changes if change.kind != "deleted"}
    new = {change.path for change in changes if change.kind == "new"}
    deleted = {change.path for change in changes if change.kind == "deleted"}
    return replace(
        work,
        runs=(*work.runs, event),
        artefacts={**work.artefacts, **written},
        created_paths=(work.created_paths | new | set(event.result.others)) - deleted,
        expected_digests=expected_after(work, event),
    )


def show_files(work: WorkState, shown: Iterable[FileRef]) -> WorkState:
    """Note files of the person that were shown or found: they are not the team's own."""
    files = {file.path: (file.sha256,) for file in shown}
    if not files:
        return work
    expected = {**work.expected_digests, **files}
    return replace(work, expected_digests=expected, person_files=work.person_files.union(files))


def write_files(work: WorkState, version: VersionWritten) -> WorkState:
    """Until a run shows that the version is on disk, the old content is expected too; "" means no file."""
    before = {file.path: file.sha256 for file in work.files}
    written = [file for file in version.files if before.get(file.path) != file.sha256]
    if version.found:
        return show_files(work, written)
    known = work.expected_digests
    added = {file.path: (*known.get(file.path, ("",)), file.sha256) for file in written}
    return replace(work, expected_digests={**known, **added})


def expected_after(work: WorkState, run: RunFinished) -> dict[str, tuple[str, ...]]:
    """The first run shows that the version is on disk; what runs do to its files is not an edit of the person."""
    files = {file.path: file.sha256 for file in work.files}
    on_disk = {} if work.runs else {path: (digest,) for path, digest in files.items()}
    changed = {
        change.path: (files[change.path], "" if change.kind == "deleted" else change.sha256 or ANY)
        for change in run.result.changes
        if change.path in files
    }
    return {**work.expected_digests, **on_disk, **changed}


def note_failure(work: WorkState, run: RunFinished) -> WorkState:
    """Note the first failure of a version, and count equal failures in a row.

    Fewer or other failing tests than before are progress: the count restarts.
    """
    work = note_signature(work, run)
    if run.purpose != "tests":
        return work
    failed, before = frozenset(run.result.report.failed), work.last_failed_tests
    progress = bool(failed and before) and (len(failed) < len(before) or failed.isdisjoint(before))
    return replace(work, failed_tests=failed, same_failures=1 if progress else work.same_failures)


def note_signature(work: WorkState, run: RunFinished) -> WorkState:
    if run.result.succeeded or run.purpose in (*DIAGNOSTIC_PURPOSES, "script") or work.failure:
        return work
    failure = signature(run.result)
    same = work.same_failures + 1 if failure == work.last_failure else 1
    return replace(work, failure=failure, last_failure=failure, same_failures=same)


def reduce_review(work: WorkState, event: ReviewGiven) -> WorkState:
    rejected = event.green and event.verdict == "revise"
    return replace(
        work,
        review=event,
        reviews=work.reviews.plus(event),
        green_rejections=work.green_rejections + 1 if rejected else 0,
    )


def finish_turn(state: State) -> State:
    """Close the turn after a usable result, which also resets the count of refusals."""
    talk = replace(state.talk, refused_reply=None, refusals=0)
    return replace(state, floor=close_turn(state.floor), talk=talk)


def reopen_turn(state: State) -> State:
    """Close the turn after a version was found in the folder; it does not count as a round of the member."""
    turn, floor = state.floor.turn, close_turn(state.floor)
    member = state.team.member_named(turn.speaker) if turn else None
    if member and not member.runs_programs:
        floor = count_refused_turn(floor, member.name)
    return replace(state, floor=floor)


def count_refused_turn(floor: FloorState, member: str) -> FloorState:
    """Count a turn without a usable result."""
    counts = {**floor.refused_turn_counts, member: floor.refused_turn_counts.get(member, 0) + 1}
    return replace(floor, refused_turn_counts=counts)


def close_person_turn(state: State) -> State:
    """Close the turn if it is the person's."""
    turn = state.floor.turn
    is_persons = turn is not None and turn.speaker == state.team.person
    return replace(state, floor=close_turn(state.floor)) if is_persons else state


def close_turn(floor: FloorState) -> FloorState:
    return replace(floor, turn=replace(floor.turn, closed=True)) if floor.turn else floor


def drop_known_remarks(state: State) -> State:
    """Keep only remarks made after the turn opened: the member has not seen them."""
    known = state.floor.turn.remarks_at_opening if state.floor.turn else 0
    return replace(state, talk=replace(state.talk, remarks=state.talk.remarks[known:])) if known else state
