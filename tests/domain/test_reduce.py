"""The fold: parts add up to the whole, and the past does not change."""

from domain.event_strategies import logs
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from septet.domain.base import DeliveredFile, FileState
from septet.domain.events import (
    BaseMoved,
    BaseSurveyed,
    ChatStarted,
    Delivered,
    DeliveryStarted,
    Event,
    MemberBriefed,
    ModelAnswered,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    Recorded,
    ReviewGiven,
    RunFinished,
    ToolAnswered,
    ToolCalled,
    TurnOpened,
    VersionWritten,
)
from septet.domain.messages import Answer, Usage
from septet.domain.plans import Plan, Requirement, plan_digest
from septet.domain.reduce import fold, reduce
from septet.domain.runs import Purpose, RunResult
from septet.domain.state import State, WorkState
from septet.domain.teams import RoleSpec, TeamSpec

Log = list[Recorded]


@given(logs(), st.integers(0, 12))
def test_folding_in_two_parts_is_folding_at_once(log: Log, cut: int) -> None:
    assert fold(log[cut:], fold(log[:cut])) == fold(log)


@given(logs())
def test_every_prefix_can_be_reached_step_by_step(log: Log) -> None:
    state = State()
    for place, recorded in enumerate(log, start=1):
        state = reduce(state, recorded)
        assert state == fold(log[:place])
        assert state.seq == recorded.seq


@given(logs())
def test_older_states_do_not_change_when_the_chat_goes_on(log: Log) -> None:
    states, pictures = [State()], [repr(State())]
    for recorded in log:
        states.append(reduce(states[-1], recorded))
        pictures.append(repr(states[-1]))

    assert [repr(state) for state in states] == pictures


@given(logs(), logs(), st.integers(0, 12))
def test_two_futures_of_one_past_do_not_mix(log: Log, other: Log, cut: int) -> None:
    past = fold(log[:cut])
    one, two = fold(log[cut:], past), fold(other, past)

    assert one == fold(log)
    assert two == fold([*log[:cut], *other])


@given(logs())
def test_everything_said_and_every_version_is_kept(log: Log) -> None:
    state = fold(log)
    events = [recorded.event for recorded in log]

    said = MemberBriefed | ModelAnswered | PersonSpoke | RunFinished | ToolCalled | ToolAnswered
    assert list(state.talk.messages) == [
        one for one in events if isinstance(one, said) and not is_baseline(one)
    ]
    assert list(state.work.versions) == [one for one in events if isinstance(one, VersionWritten)]


def is_baseline(event: object) -> bool:
    """A run on the code as it was before: it is kept beside the talk."""
    return isinstance(event, RunFinished) and event.purpose == "baseline" and not event.about


def recorded(*events: ModelAnswered | PlanProposed | PlanApproved) -> Log:
    return [Recorded(chat="clock", seq=seq, at=0.0, event=event) for seq, event in enumerate(events, start=1)]


def test_what_members_cost_is_added_up() -> None:
    answer = Answer(text="", usage=Usage(prompt=100, cached=40, completion=10), cost=0.25, seconds=2.0)
    state = fold(
        recorded(
            ModelAnswered(role="coder", answer=answer),
            ModelAnswered(role="reviewer", answer=answer),
            ModelAnswered(role="coder", answer=answer),
        )
    )

    assert state.spending.members["coder"].usage == Usage(prompt=200, cached=80, completion=20)
    assert (state.spending.total.answers, state.spending.total.cost, state.spending.seconds) == (3, 0.75, 6.0)


def test_only_the_plan_that_was_shown_can_be_approved() -> None:
    shown = Plan(items=(Requirement(id="P1", text="it draws a clock"),))
    newer = Plan(items=(Requirement(id="P1", text="it draws two clocks"),))
    outdated = PlanApproved(plan=plan_digest(shown))

    assert fold(recorded(PlanProposed(plan=shown), outdated)).plan.approved
    assert not fold(recorded(PlanProposed(plan=shown), PlanProposed(plan=newer), outdated)).plan.approved


def of(*events: Event) -> State:
    team = TeamSpec(
        name="t", members=(RoleSpec(name="coder", role="coder"), RoleSpec(name="run", role="runner"))
    )
    started = ChatStarted(goal="g", team=team, workspace="/w")
    return fold(
        Recorded(chat="c", seq=seq, at=0.0, event=event) for seq, event in enumerate([started, *events], 1)
    )


def run(purpose: Purpose, about: str = "", seconds: float = 1.0, code: int = 0) -> RunFinished:
    result = RunResult(exit_code=code, seconds=seconds, stderr="ValueError: x" if code else "")
    return RunFinished(id="r", purpose=purpose, about=about, command="c", tree="", result=result)


def test_what_a_member_is_told_in_its_own_turn_belongs_to_the_answer_that_follows() -> None:
    brief = MemberBriefed(member="coder", text="x")
    said = ModelAnswered(role="coder", answer=Answer(text="y"))
    begun = [TurnOpened(speaker="coder"), brief, said, said, brief]
    turn = of(*begun).floor.turn
    assert turn is not None
    assert turn.briefings == (0, 2)
    other = of(*begun, replace(brief, member="planner"), replace(brief, shortens=True)).floor.turn
    assert other is not None
    assert other.briefings == (0, 2), "another's, and one that only shortens, ask nothing of the coder"


def test_the_first_run_of_the_tests_on_the_base_is_kept_apart_and_takes_time_like_any() -> None:
    survey = BaseSurveyed(kind="git", root="/p")
    state = of(survey, TurnOpened(speaker="run"), run("baseline"), run("baseline", "affected"), run("run"))
    assert state.base is not None
    assert state.base.baseline == run("baseline")
    assert state.work.runs == (run("baseline", "affected"), run("run"))
    assert state.spending.seconds == 3.0
    assert state.spending.members["run"].seconds == 3.0
    assert [one for one in state.talk.messages if isinstance(one, RunFinished)] == [*state.work.runs]


def test_reviews_that_want_more_of_what_passes_are_counted_until_one_does_not() -> None:
    more = ReviewGiven(version=1, tree="", verdict="revise", green=True)
    written = VersionWritten(number=1, files=(), tree="")
    assert of(written, more, more).work.green_rejections == 2
    assert of(written, more, replace(more, verdict="accept")).work.green_rejections == 0
    assert of(written, more, replace(more, green=False)).work.green_rejections == 0


def test_equal_failures_of_versions_in_a_row_are_counted() -> None:
    def versions(*codes: int) -> WorkState:
        events: list[Event] = []
        for number, code in enumerate(codes, start=1):
            events += [VersionWritten(number=number, files=(), tree=f"{number}")]
            events += [replace(run("run", code=code), tree=f"{number}")]
        return of(*events).work

    assert versions(1).same_failures == 1
    assert versions(1, 1, 1).same_failures == 3
    assert (versions(1, 0).failure, versions(1).failure) == ("", "ValueError: x")


def test_after_a_delivery_the_folder_holds_what_was_written_and_not_what_was_in_conflict() -> None:
    def state(path: str, sha256: str) -> FileState:
        return FileState(path=path, sha256=sha256)

    files = (
        DeliveredFile(path="a", before=state("a", "0"), after=state("a", "1")),
        DeliveredFile(path="b", before=state("b", "0"), after=state("b", "2"), how="conflict"),
        DeliveredFile(
            path="c", before=state("c", "0"), after=state("c", "3"), how="merged", base_after=state("c", "4")
        ),
    )
    survey = BaseSurveyed(kind="git", root="/p")
    started = DeliveryStarted(number=1, tree="t", files=files)
    done = Delivered(number=1, tree="t", files=files)
    begun, after = of(survey, started).base, of(survey, started, done).base
    assert begun is not None
    assert after is not None
    assert (begun.delivery, begun.deliveries) == (started, ())
    assert (after.delivery, after.deliveries) == (None, (done,))
    assert {path: file.sha256 for path, file in after.moved.items()} == {"a": "1", "c": "4"}
    branched = of(survey, started, replace(done, branch="b")).base
    assert branched is not None
    assert branched.moved == {}


def test_what_the_person_changes_meanwhile_is_remembered_and_conflicts_are_the_newest() -> None:
    one, other = FileState(path="a", sha256="1"), FileState(path="b", sha256="2")
    survey = BaseSurveyed(kind="git", root="/p")
    base = of(survey, BaseMoved(changed=(one,), conflicts=("a",)), BaseMoved(changed=(other,))).base
    assert base is not None
    assert (base.moved, base.conflicts) == ({"a": one, "b": other}, ())
