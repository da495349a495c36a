"""Candidates: several answers in one turn, and the checks choose."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from septet.agents.records import Rehearsal
from septet.agents.run_context import RunContext
from septet.agents.runner import rehearse_version
from septet.agents.trials import Questions
from septet.domain.events import (
    ChatStarted,
    DecisionRecorded,
    Event,
    ModelAnswered,
    PlanApproved,
    PlanProposed,
    Recorded,
    ReplyRefused,
    RunFinished,
    TurnOpened,
    VersionWritten,
)
from septet.domain.messages import Answer, Usage
from septet.domain.plans import CommandSucceeds, Plan, Requirement, TestsPass, plan_digest
from septet.domain.reduce import fold
from septet.domain.runs import RunResult
from septet.domain.state import State
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.models.providers.scripted import Script, ScriptedModel, ScriptedTurn, turn_text
from septet.runtime.bus import MemoryBus
from septet.sandboxes.interpreters import Interpreters
from septet.sandboxes.job_runner import JobRunner
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.stores.memory import MemoryBlobs
from septet.team.agreement import Outcomes
from septet.ways.iterate.best_of_n import TRIAL_SECONDS, Draw, Trials, best_of_n_agent
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
        return await rehearse_version(state, version, run_context())

    trials = Trials(rehearse=rehearse, observe=no_observation)
    agent = best_of_n_agent(CODER, model, MemoryBus(), blobs, trials)
    rehearsal = Rehearsal(state)
    await rehearsal.play(agent)
    return rehearsal.events


async def no_observation(state: State, programs: Sequence[str], questions: Questions) -> list[Outcomes]:
    raise AssertionError("what does not answer in the small form is not compared")


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


@pytest.mark.torture
async def test_no_candidate_is_drawn_that_the_budget_does_not_hold(tmp_path: Path) -> None:
    said = answered(WRONG, TEST)
    for budget, asked in ((199, 0), (200, 1)):
        state = replace(told(said), budget=Budget(tokens=budget))
        events = await turn(state, [pair(WRONG, TEST), pair(RIGHT, TEST)], tmp_path / str(budget))
        assert sum(isinstance(event, ModelAnswered) for event in events) == asked
        assert isinstance(events[-1], VersionWritten)


@pytest.mark.torture
async def test_a_right_program_and_right_tests_find_each_other(tmp_path: Path) -> None:
    events = await turn(told(), [pair(RIGHT, WRONG_TEST), pair(WRONG, TEST)], tmp_path)
    decision, version = events[-2:]
    assert isinstance(decision, DecisionRecorded)
    assert decision.what == "took the program of candidate 1 with the tests of candidate 2 of 2"
    assert isinstance(version, VersionWritten)
    assert version.number == 1


async def test_a_candidate_that_does_not_end_is_tried_once_and_briefly(tmp_path: Path) -> None:
    seen: list[tuple[str, float]] = []

    async def rehearse(state: State, version: VersionWritten) -> State:
        seen.append((version.tree, state.team.limits.seconds))
        rehearsal = Rehearsal(state)
        await rehearsal.record(version)
        stopped = RunResult(exit_code=-9, stopped_by="time")
        return await rehearsal.record(
            RunFinished(id="1", purpose="tests", command="pytest", tree=version.tree, result=stopped)
        )

    draw = Draw(told(), CODER, Trials(rehearse=rehearse, observe=no_observation))
    answers = [answered(f"{WRONG}# {number}\n", TEST.replace("3", str(number))) for number in range(3)]
    await draw.add(answers, MemoryBlobs())
    assert len(seen) == len({tree for tree, _ in seen}) == 3
    assert {seconds for _, seconds in seen} == {TRIAL_SECONDS}


async def test_without_a_green_one_the_best_is_taken_and_its_faults_are_told(tmp_path: Path) -> None:
    wrong = [pair(WRONG, WRONG_TEST), pair(RIGHT, WRONG_TEST), pair(WRONG, WRONG_TEST)]
    events = await turn(told(), wrong, tmp_path)
    decision = events[-2]
    assert isinstance(decision, DecisionRecorded)
    assert decision.what == "took candidate 2 of 3"
    assert "1 of 1 test fails" in decision.why


@pytest.mark.torture
async def test_answers_from_before_a_crash_are_used_and_not_bought_again(tmp_path: Path) -> None:
    answers = [pair("raise SystemExit", TEST), pair(RIGHT, TEST)]
    events = await turn(told(answered(WRONG, TEST)), answers, tmp_path)
    assert [type(event) for event in events] == [ModelAnswered, DecisionRecorded, VersionWritten]


async def test_three_unreadable_answers_are_one_refusal(tmp_path: Path) -> None:
    events = await turn(told(), [{}, {}, {}], tmp_path)
    assert [type(event) for event in events] == [ModelAnswered] * 3 + [ReplyRefused]


async def test_a_settled_turn_is_left_alone(tmp_path: Path) -> None:
    state = told()
    assert state.floor.turn is not None
    done = replace(state, floor=replace(state.floor, turn=replace(state.floor.turn, closed=True)))
    assert await turn(done, [], tmp_path) == []
