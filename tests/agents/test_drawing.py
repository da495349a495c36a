"""Candidates: several answers in one turn, and the checks choose."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from septet.agents.records import Rehearsal
from septet.agents.runner import RunContext, compare_versions, try_version
from septet.domain.events import (
    ChatStarted,
    Confirmation,
    DecisionRecorded,
    Event,
    ModelAnswered,
    PlanApproved,
    PlanProposed,
    Recorded,
    ReplyRefused,
    TurnOpened,
    VersionWritten,
)
from septet.domain.messages import Answer, Usage
from septet.domain.plans import CommandSucceeds, Plan, Requirement, TestsPass, plan_digest
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.models.providers.scripted import Script, ScriptedModel, ScriptedTurn, turn_text
from septet.runtime.bus import MemoryBus
from septet.sandboxes.interpreters import Interpreters
from septet.sandboxes.job_runner import JobRunner
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.stores.memory import MemoryBlobs
from septet.team.small_form import check_of
from septet.ways.iterate.best_of_n import Draw, Outcomes, Trials, best_of_n_agent
from septet.workspace.files import Workspace

pytestmark = pytest.mark.anyio

CODER = RoleSpec(name="coder", role="coder", candidates=3)
CHECK = "python -c 'from double import double; assert double(2) == 4'"
PLAN = Plan(
    items=(
        Requirement(id="P1", text="double", check=TestsPass(target="test_double.py")),
        Requirement(id="P2", text="double(2) == 4", check=CommandSucceeds(command=CHECK)),
    )
)
RIGHT = "def double(n):\n    return 2 * n\n"
WRONG = "def double(n):\n    return n * n + 1\n"
TEST = "from double import double\n\n\ndef test_double():\n    assert double(3) == 6\n"
WRONG_TEST = TEST.replace("6", "7")


def told(*events: Event, plan: Plan = PLAN) -> State:
    team = TeamSpec(name="t", members=(CODER,))
    first = [
        ChatStarted(goal="double", team=team, workspace="."),
        PlanProposed(plan=plan),
        PlanApproved(plan=plan_digest(plan)),
        TurnOpened(speaker="coder"),
    ]
    numbered = enumerate([*first, *events], start=1)
    return fold([Recorded(chat="c", seq=seq, at=float(seq), event=event) for seq, event in numbered])


async def turn(
    state: State, answers: Sequence[dict[str, str]], folder: Path, blobs: MemoryBlobs | None = None
) -> list[Event]:
    """What a coder who says these things one after the other does in its turn."""
    turns = tuple(ScriptedTurn(role="coder", say="words", files=files) for files in answers)
    model = ScriptedModel(Script(turns=turns), "drawn")
    blobs = blobs or MemoryBlobs()
    sandbox = JobRunner(UnsafeLocal(), (Interpreters(folder / "cache").prepare,))
    places = iter(range(100))

    def run_context() -> RunContext:
        return RunContext(Workspace(folder / str(next(places))), sandbox, blobs, MemoryBus())

    async def rehearse(state: State, version: VersionWritten) -> State:
        return await try_version(state, version, run_context())

    async def compare(state: State, versions: Sequence[VersionWritten], calls: Sequence[str]) -> Outcomes:
        return await compare_versions(state, versions, calls, run_context())

    agent = best_of_n_agent(CODER, model, MemoryBus(), blobs, Trials(rehearse=rehearse, compare=compare))
    rehearsal = Rehearsal(state)
    await rehearsal.play(agent)
    return rehearsal.events


async def no_rehearsal(state: State, version: VersionWritten) -> State:
    raise AssertionError("nothing here can be rehearsed")


async def no_comparison(state: State, versions: Sequence[VersionWritten], calls: Sequence[str]) -> Outcomes:
    raise AssertionError("nothing here can be compared")


def pair(code: str, tests: str) -> dict[str, str]:
    return {"double.py": code, "test_double.py": tests}


def answered(code: str, tests: str) -> ModelAnswered:
    """An answer that the log has already."""
    text = turn_text(ScriptedTurn(role="coder", files=pair(code, tests)))
    return ModelAnswered(role="coder", answer=Answer(text=text, usage=Usage(prompt=100)))


async def test_the_first_green_candidate_ends_the_drawing(tmp_path: Path) -> None:
    events = await turn(told(), [pair(WRONG, TEST), pair(RIGHT, TEST), pair(WRONG, TEST)], tmp_path)
    assert [type(event) for event in events] == [
        ModelAnswered,
        ModelAnswered,
        DecisionRecorded,
        VersionWritten,
    ]
    decision = events[2]
    assert isinstance(decision, DecisionRecorded)
    assert (decision.what, decision.why) == ("took candidate 2 of 2", "every check passes")


async def test_no_candidate_is_drawn_that_the_budget_does_not_hold(tmp_path: Path) -> None:
    said = answered(WRONG, TEST)
    for budget, asked in ((199, 0), (200, 1)):
        state = replace(told(said), budget=Budget(tokens=budget))
        events = await turn(state, [pair(WRONG, TEST), pair(RIGHT, TEST)], tmp_path / str(budget))
        assert sum(isinstance(event, ModelAnswered) for event in events) == asked
        assert isinstance(events[-1], VersionWritten)


async def test_a_right_program_and_right_tests_find_each_other(tmp_path: Path) -> None:
    events = await turn(told(), [pair(RIGHT, WRONG_TEST), pair(WRONG, TEST)], tmp_path)
    decision, version = events[-2:]
    assert isinstance(decision, DecisionRecorded)
    assert decision.what == "took the program of candidate 1 with the tests of candidate 2 of 2"
    assert isinstance(version, VersionWritten)
    assert version.number == 1


EXAMPLES = Plan(
    items=(
        Requirement(id="P1", text="double", check=TestsPass(target="test_double.py")),
        Requirement(id="P2", text="double(3) == 6", check=check_of("double", "double(3) == 6")),
    )
)
OTHERWISE = "def double(n):\n    return n + n\n"
BY_CHANCE = "def double(n):\n    return n + 3\n"


async def test_two_programs_that_behave_alike_are_believed(tmp_path: Path) -> None:
    answers = [pair(RIGHT, TEST), pair(OTHERWISE, TEST), pair(BY_CHANCE, TEST)]
    events = await turn(told(plan=EXAMPLES), answers, tmp_path)
    decision, version = events[-2:]
    assert isinstance(decision, DecisionRecorded)
    assert isinstance(version, VersionWritten)
    assert decision.what == "took candidate 1 of 2"
    assert version.note.startswith("2 candidates behave alike on ")
    assert version.confirmation == Confirmation(verdict="agreed", detail=version.note)


@pytest.mark.parametrize("last", [OTHERWISE, WRONG])
async def test_one_dissent_is_a_doubt(tmp_path: Path, last: str) -> None:
    answers = [pair(BY_CHANCE, TEST), pair(RIGHT, TEST), pair(last, TEST)]
    version = (await turn(told(plan=EXAMPLES), answers, tmp_path))[-1]
    assert isinstance(version, VersionWritten)
    assert version.note.startswith(
        "other candidates do not confirm it: double(0) gives 3 here and 0 elsewhere"
    )
    assert version.confirmation is not None
    assert version.confirmation.verdict == "contradicted"


async def test_a_model_that_costs_nothing_is_asked_twice_at_once_but_not_for_more_than_is_wanted(
    tmp_path: Path,
) -> None:
    small = replace(CODER, form="small")
    state = told(plan=EXAMPLES)
    draw = Draw(state, Trials(rehearse=no_rehearsal, compare=no_comparison))
    assert [draw.next_draws(small), draw.next_draws(CODER)] == [2, 1]
    unreadable = ModelAnswered(role="coder", answer=Answer(text="no code"))
    for left in (2, 1, 0):
        await draw.add(unreadable, MemoryBlobs())
        assert draw.next_draws(small) == left


async def test_a_single_green_program_is_worth_as_many_draws_again(tmp_path: Path) -> None:
    answers = [pair(RIGHT, TEST), pair(WRONG, WRONG_TEST), {}, {}, pair(OTHERWISE, TEST)]
    events = await turn(told(plan=EXAMPLES), answers, tmp_path)
    decision, version = events[-2:]
    assert isinstance(decision, DecisionRecorded)
    assert isinstance(version, VersionWritten)
    assert decision.what == "took candidate 1 of 5"
    assert version.note.startswith("2 candidates behave alike on ")


@pytest.mark.parametrize(("before", "believed"), [(OTHERWISE, True), (BY_CHANCE, False)])
async def test_the_version_before_may_confirm_a_single_green_program(
    tmp_path: Path, before: str, believed: bool
) -> None:
    lonely = [pair(WRONG, WRONG_TEST), *[{}] * 4]
    blobs = MemoryBlobs()
    first = (await turn(told(plan=EXAMPLES), [pair(before, TEST), *lonely], tmp_path / "1", blobs))[-1]
    assert isinstance(first, VersionWritten)
    assert first.note == "other candidates do not confirm it on calls like the plan's"
    state = told(first, TurnOpened(speaker="coder"), plan=EXAMPLES)
    second = (await turn(state, [pair(RIGHT, TEST), *lonely], tmp_path / "2", blobs))[-1]
    assert isinstance(second, VersionWritten)
    assert ("behave alike" in second.note) is believed


async def test_without_a_green_one_the_best_is_taken_and_its_faults_are_told(tmp_path: Path) -> None:
    wrong = [pair(WRONG, WRONG_TEST), pair(RIGHT, WRONG_TEST), pair(WRONG, WRONG_TEST)]
    events = await turn(told(), wrong, tmp_path)
    decision = events[-2]
    assert isinstance(decision, DecisionRecorded)
    assert decision.what == "took candidate 2 of 3"
    assert "1 of 1 test fails" in decision.why


async def test_answers_from_before_a_crash_are_used_and_not_bought_again(tmp_path: Path) -> None:
    answers = [pair("raise SystemExit", TEST), pair(RIGHT, TEST)]
    events = await turn(told(answered(WRONG, TEST)), answers, tmp_path)
    assert [type(event) for event in events] == [ModelAnswered, DecisionRecorded, VersionWritten]


async def test_three_unreadable_answers_are_one_refusal(tmp_path: Path) -> None:
    events = await turn(told(), [{}, {}, {}], tmp_path)
    assert [type(event) for event in events] == [ModelAnswered] * 3 + [ReplyRefused]


async def test_a_settled_turn_is_left_alone(tmp_path: Path) -> None:
    state = told()
    assert state.turn is not None
    done = replace(state, turn=replace(state.turn, settled=True))
    assert await turn(done, [], tmp_path) == []
