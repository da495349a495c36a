"""The fold: parts add up to the whole, and the past does not change."""

from domain.event_strategies import logs
from hypothesis import given
from hypothesis import strategies as st

from septet.domain.events import (
    MemberBriefed,
    ModelAnswered,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    Recorded,
    RunFinished,
    ToolAnswered,
    ToolCalled,
    VersionWritten,
)
from septet.domain.messages import Answer, Usage
from septet.domain.plans import Plan, Requirement, plan_digest
from septet.domain.reduce import fold, reduce
from septet.domain.state import State

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
