"""Functions of a small model: the best of all rounds is the version, and only enough programs alike are believed."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from septet.agents.records import Rehearsal
from septet.agents.trials import Questions, try_programs
from septet.domain.events import (
    ChatStarted,
    DecisionRecorded,
    Event,
    ModelAnswered,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    Recorded,
    ReplyRefused,
    TurnOpened,
    VersionWritten,
)
from septet.domain.messages import Answer, Delta, Request
from septet.domain.plans import Plan, plan_digest
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.domain.teams import RoleSpec, TeamSpec
from septet.runtime.bus import MemoryBus
from septet.sandboxes.interpreters import Interpreters
from septet.sandboxes.job_runner import JobRunner
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.stores.memory import MemoryBlobs
from septet.team.agreement import MOST_AGREED, MOST_DRAWS, Outcomes
from septet.team.goal_examples import stated_examples
from septet.team.small_form import parse_small_plan
from septet.ways.iterate.best_of_n import Trials, best_of_n_agent

pytestmark = pytest.mark.anyio

CODER = RoleSpec(name="coder", role="coder", candidates=4, form="small", temperature=0.0)
GOAL = "Write double(n).\ndouble(3) == 6"
RIGHT = "def double(n):\n    return 2 * n\n"
FLOAT = "def double(n):\n    return n * 2.0\n"
SUM = "def double(n):\n    return n + n\n"
BY_CHANCE = "def double(n):\n    return n + 3\n"
WRONG = "def double(n):\n    return n * n + 1\n"
GREEDY = "def double(n):\n    return len('x' * 10**10)\n"
ENDLESS = "def double(n):\n    while True:\n        pass\n"


STUBBORN = """\
def double(n):
    while True:
        try:
            double(n)
        except BaseException:
            pass
"""


class Replies:
    """A model that says these things one after the other, and remembers how warm it was asked."""

    def __init__(self, texts: Sequence[str], together: bool = False) -> None:
        self._texts = list(texts)
        self._together = together
        self.temperatures: list[float | None] = []
        self.draws: list[int] = []

    async def answer(self, request: Request) -> AsyncGenerator[Delta | Answer, None]:
        self.temperatures.append(request.temperature)
        self.draws.append(request.draws)
        first, *others = [self._next() for _ in range(request.draws if self._together else 1)]
        yield Answer(text=first, others=tuple(others))

    def _next(self) -> str:
        return self._texts.pop(0) if self._texts else "nothing"


def began(*guesses: str, goal: str = GOAL) -> State:
    form = f'{{"file": "double.py", "kind": "function", "examples": {list(guesses)!r}}}'.replace("'", '"')
    plan = parse_small_plan(goal, form, lenient=True)
    assert isinstance(plan, Plan)
    return told([], plan, goal)


def told(events: Sequence[Event], plan: Plan, goal: str = GOAL) -> State:
    first = [
        ChatStarted(goal=goal, team=TeamSpec(name="t", members=(CODER,)), workspace="."),
        PlanProposed(plan=plan),
        PlanApproved(plan=plan_digest(plan)),
        TurnOpened(speaker="coder"),
    ]
    numbered = enumerate([*first, *events], start=1)
    return fold([Recorded(chat="c", seq=seq, at=float(seq), event=event) for seq, event in numbered])


class Coder:
    """A coder with blobs and a sandbox of its own."""

    def __init__(
        self, folder: Path, replies: Sequence[str], candidates: int = 4, together: bool = False
    ) -> None:
        self.blobs = MemoryBlobs()
        self.model = Replies(replies, together)
        sandbox = JobRunner(UnsafeLocal(), (Interpreters(folder / "cache").prepare,))
        workspace = folder / "work"
        workspace.mkdir(parents=True)

        async def observe(state: State, programs: Sequence[str], questions: Questions) -> list[Outcomes]:
            return await try_programs(state, programs, questions, sandbox, str(workspace))

        async def rehearse(state: State, version: VersionWritten) -> State:
            raise AssertionError("functions are compared, not rehearsed")

        trials = Trials(rehearse=rehearse, observe=observe)
        member = replace(CODER, candidates=candidates)
        self._agent = best_of_n_agent(member, self.model, MemoryBus(), self.blobs, trials)

    async def turn(self, state: State) -> list[Event]:
        rehearsal = Rehearsal(state)
        await rehearsal.play(self._agent)
        return rehearsal.events

    async def files(self, version: Event) -> dict[str, str]:
        assert isinstance(version, VersionWritten)
        return {file.path: (await self.blobs.get(file.sha256)).decode() for file in version.files}


async def test_eight_programs_are_believed_if_those_that_meet_the_example_behave_alike(
    tmp_path: Path,
) -> None:
    coder = Coder(tmp_path, [RIGHT, FLOAT, SUM, WRONG, RIGHT, WRONG, SUM, FLOAT], candidates=16)
    decision, version = (await coder.turn(began()))[-2:]
    assert isinstance(decision, DecisionRecorded)
    assert isinstance(version, VersionWritten)
    assert version.confirmation is not None
    assert version.confirmation.verdict == "agreed"
    assert decision.what == "took program 1 of 8 in all rounds"
    assert "6 of 6 behave alike" in decision.why
    assert (await coder.files(version))["double.py"] == RIGHT
    assert "assert double(3) == 6" in (await coder.files(version))["test_double.py"]
    assert (await coder.files(version))["test_double.py"].count("assert double(") == 1 + MOST_AGREED


async def test_without_a_stated_example_four_that_behave_alike_are_enough(tmp_path: Path) -> None:
    coder = Coder(tmp_path, [RIGHT, FLOAT, SUM, RIGHT, WRONG], candidates=16)
    goal = "Write a function double(n) that doubles a number."
    version = (await coder.turn(began("double(1) == 2", goal=goal)))[-1]
    assert isinstance(version, VersionWritten)
    assert version.confirmation is not None
    assert version.confirmation.verdict == "agreed"
    assert coder.model.draws == [1, 3, 1, 1]


OTHERS = [f"def double(n):\n    return 2 * n + {more}\n" for more in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("strays", "believed"),
    [
        ([WRONG] * 3, True),
        ([WRONG] * 4, False),
        ([*OTHERS, *OTHERS], True),
        ([*OTHERS, *OTHERS, WRONG], False),
    ],
)
async def test_without_a_stated_example_half_are_enough_if_no_large_group_behaves_otherwise(
    tmp_path: Path, strays: list[str], believed: bool
) -> None:
    coder = Coder(tmp_path, [RIGHT, *strays, *[RIGHT, SUM] * 8], candidates=16)
    goal = "Write a function double(n) that doubles a number."
    version = (await coder.turn(began("double(1) == 2", goal=goal)))[-1]
    assert isinstance(version, VersionWritten)
    assert version.confirmation is not None
    assert (version.confirmation.verdict == "agreed") is believed
    assert (await coder.files(version))["double.py"] == RIGHT


DOUBLING = "Write a function double(n) that doubles a number."
GROUPS = [*[f"{RIGHT}assert double(4) == 8\n", f"{BY_CHANCE}assert double(4) == 7\n"] * 6, SUM, *OTHERS[:3]]
"""Sixteen programs: seven are right, six are wrong alike."""


def opinions(value: str, count: int = 8) -> list[str]:
    return [f"```python\nassert double(1) == {value}\n```"] * count


@pytest.mark.parametrize(
    ("said", "verdict", "chosen", "asked"),
    [
        (opinions("2"), "agreed", RIGHT, 1),
        ([*opinions("2", 6), "assert double(1) == 5", "I do not know"], "agreed", RIGHT, 1),
        (opinions("4"), "contradicted", RIGHT, 1),
        ([*opinions("2", 5), *opinions("4", 3), *opinions("7", 8)], "contradicted", RIGHT, 3),
        (["no idea"] * 24, "contradicted", RIGHT, 3),
    ],
)
async def test_what_the_model_wants_of_a_call_decides_between_groups_if_it_wants_what_the_largest_gives(
    tmp_path: Path, said: list[str], verdict: str, chosen: str, asked: int
) -> None:
    coder = Coder(tmp_path, [*GROUPS, *said], candidates=16, together=True)
    version = (await coder.turn(began("double(5) == 10", goal=DOUBLING)))[-1]
    assert isinstance(version, VersionWritten)
    assert version.confirmation is not None
    assert version.confirmation.verdict == verdict
    assert (await coder.files(version))["double.py"] == chosen
    assert coder.model.draws == [1, 3, 4, 4, 4, *[4, 4] * asked]


async def test_opinions_of_before_a_crash_count_and_a_later_round_asks_nothing(tmp_path: Path) -> None:
    coder = Coder(tmp_path, [*GROUPS, *opinions("4")], candidates=16, together=True)
    state = began("double(5) == 10", goal=DOUBLING)
    assert state.plan.current is not None
    first = await coder.turn(state)
    assert coder.model.draws == [1, 3, 4, 4, 4, 4, 4]
    assert set(coder.model.temperatures[-2:]) == {0.8}
    bought = [one for one in first if isinstance(one, ModelAnswered)]
    again = Coder(tmp_path / "again", [], candidates=16, together=True)
    resumed = (await again.turn(told(bought, state.plan.current, DOUBLING)))[-1]
    later = (await coder.turn(told([*first, TurnOpened(speaker="coder")], state.plan.current, DOUBLING)))[-1]
    assert (again.model.draws, len(coder.model.draws)) == ([], 7)
    for version in (resumed, later):
        assert isinstance(version, VersionWritten)
        assert version.confirmation is not None
        assert version.confirmation.verdict == "contradicted"


async def test_where_the_goal_states_an_example_or_not_all_are_drawn_nobody_is_asked_for_opinions(
    tmp_path: Path,
) -> None:
    stated = Coder(tmp_path / "stated", [*GROUPS, *opinions("2")], candidates=16, together=True)
    await stated.turn(began())
    few = Coder(tmp_path / "few", [RIGHT, BY_CHANCE] * 8, candidates=8, together=True)
    await few.turn(began("double(5) == 10", goal=DOUBLING))
    assert (sum(stated.model.draws), sum(few.model.draws)) == (16, 8)


STRICT = "def double(n):\n    if n < 0:\n        raise ValueError(n)\n    return 2 * n\n"


async def test_an_input_that_some_refuse_parts_nobody_where_the_goal_states_no_example(
    tmp_path: Path,
) -> None:
    coder = Coder(tmp_path, [RIGHT, STRICT, SUM, STRICT], candidates=4)
    goal = "Write a function double(n) that doubles a number."
    decision, version = (await coder.turn(began("double(1) == 2", goal=goal)))[-2:]
    assert isinstance(version, VersionWritten)
    assert version.confirmation is not None
    assert version.confirmation.verdict == "agreed"
    assert isinstance(decision, DecisionRecorded)
    assert "4 of 4 behave alike" in decision.why


async def test_seven_are_too_few(tmp_path: Path) -> None:
    coder = Coder(tmp_path, [RIGHT, FLOAT, SUM, WRONG, RIGHT, WRONG, SUM], candidates=7)
    version = (await coder.turn(began()))[-1]
    assert isinstance(version, VersionWritten)
    assert version.confirmation is not None
    assert version.confirmation.verdict == "unconfirmed"


FAR_OFF = "def double(n):\n    return 2 * n if n >= 0 else 0\n"


@pytest.mark.parametrize(("strays", "verdict"), [(1, "agreed"), (6, "contradicted")])
async def test_when_all_are_drawn_a_stray_program_does_not_speak_against_the_others(
    tmp_path: Path, strays: int, verdict: str
) -> None:
    replies = [*[FAR_OFF] * strays, *[RIGHT, SUM] * 8]
    version = (await Coder(tmp_path, replies, candidates=16).turn(began()))[-1]
    assert isinstance(version, VersionWritten)
    assert version.confirmation is not None
    assert (version.confirmation.verdict == "agreed") is (verdict == "agreed")


async def test_candidates_share_a_request_where_the_model_gives_several_answers(tmp_path: Path) -> None:
    coder = Coder(tmp_path, [WRONG, *[RIGHT, BY_CHANCE, SUM] * 5], candidates=16, together=True)
    events = await coder.turn(began())
    assert coder.model.draws == [1, 3, 4, 4, 4]
    assert coder.model.temperatures == [0.0, 0.8, 0.8, 0.8, 1.0]
    assert isinstance(events[-2], DecisionRecorded)
    assert events[-2].what.endswith("of 16 in all rounds")


async def test_where_the_model_gives_one_answer_only_the_others_are_asked_for_one_by_one(
    tmp_path: Path,
) -> None:
    coder = Coder(tmp_path, [WRONG, *[RIGHT, BY_CHANCE, SUM] * 5], candidates=16)
    await coder.turn(began())
    assert coder.model.draws == [1, 3, *[1] * 14]


async def test_several_answers_of_before_a_crash_are_not_bought_again(tmp_path: Path) -> None:
    coder = Coder(tmp_path, [RIGHT] * 16, candidates=8, together=True)
    state = began()
    assert state.plan.current is not None
    bought = [one for one in await coder.turn(state) if isinstance(one, ModelAnswered)]
    again = Coder(tmp_path / "again", [], candidates=8, together=True)
    events = await again.turn(told(bought, state.plan.current))
    assert again.model.draws == []
    assert isinstance(events[-1], VersionWritten)


async def test_two_alike_are_not_enough_and_a_disagreement_is_the_question(tmp_path: Path) -> None:
    coder = Coder(tmp_path, [RIGHT, SUM, BY_CHANCE])
    version = (await coder.turn(began()))[-1]
    assert isinstance(version, VersionWritten)
    assert version.confirmation is not None
    assert version.confirmation.verdict == "contradicted"
    assert "here and" in version.confirmation.detail
    assert (await coder.files(version))["double.py"] == RIGHT


async def test_a_program_that_nothing_confirms_says_why(tmp_path: Path) -> None:
    coder = Coder(tmp_path, [RIGHT])
    version = (await coder.turn(began()))[-1]
    assert isinstance(version, VersionWritten)
    assert version.confirmation is not None
    assert version.confirmation.verdict == "unconfirmed"
    assert version.confirmation.detail == "1 of 1 candidates behave alike, which is too few"


async def test_an_example_that_the_planner_invented_vetoes_nothing(tmp_path: Path) -> None:
    said = [f"{RIGHT}assert double(4) == 8\nassert double(5) == 11\n", SUM, FLOAT]
    coder = Coder(tmp_path, [*said, *[RIGHT] * 5], candidates=8)
    version = (await coder.turn(began("double(2) == 5")))[-1]
    assert isinstance(version, VersionWritten)
    assert version.confirmation is not None
    assert version.confirmation.verdict == "agreed"
    tests = (await coder.files(version))["test_double.py"]
    assert "double(3) == 6" in tests
    assert "double(4) == 8" in tests
    assert "double(2) == 5" not in tests
    assert "double(5) == 11" not in tests


async def test_the_best_program_of_all_rounds_is_the_version(tmp_path: Path) -> None:
    coder = Coder(tmp_path, [WRONG, RIGHT, WRONG, ENDLESS, WRONG, BY_CHANCE, WRONG, "no code"])
    state = began()
    first = await coder.turn(state)
    assert state.plan.current is not None
    again = told([*first, TurnOpened(speaker="coder")], state.plan.current)
    second = await coder.turn(again)
    for number, events in enumerate((first, second), start=1):
        assert (await coder.files(events[-1]))["double.py"] == RIGHT
        assert getattr(events[-1], "number", None) == number
    assert coder.model.temperatures == [0.0, *[0.8] * 7]


async def test_what_was_drawn_before_the_person_asked_for_something_else_does_not_count(
    tmp_path: Path,
) -> None:
    wished = "def double(n):\n    return 2 * n if n > 0 else 0\n"
    coder = Coder(tmp_path, [RIGHT, SUM, FLOAT, RIGHT, wished, wished, wished, wished])
    state = began()
    assert state.plan.current is not None
    spoken = PersonSpoke(text="negative numbers give 0")
    first = await coder.turn(state)
    second = await coder.turn(told([*first, spoken, TurnOpened(speaker="coder")], state.plan.current))
    assert (await coder.files(first[-1]))["double.py"] == RIGHT
    assert (await coder.files(second[-1]))["double.py"] == wished


async def test_after_so_many_draws_nobody_is_asked_and_the_best_stays(tmp_path: Path) -> None:
    coder = Coder(tmp_path, [WRONG, BY_CHANCE, RIGHT, *[WRONG] * 20])
    state = began()
    assert state.plan.current is not None
    events: list[Event] = []
    for _ in range(4):
        events += [*await coder.turn(told(events, state.plan.current)), TurnOpened(speaker="coder")]
    assert sum(isinstance(one, ModelAnswered) for one in events) == MOST_DRAWS
    versions = [one for one in events if isinstance(one, VersionWritten)]
    assert len({one.tree for one in versions}) == 1
    assert len(versions) == 4


async def test_a_program_without_end_or_measure_costs_the_others_nothing(tmp_path: Path) -> None:
    coder = Coder(tmp_path, [ENDLESS, GREEDY, STUBBORN, RIGHT])
    version = (await coder.turn(began()))[-1]
    assert (await coder.files(version))["double.py"] == RIGHT


async def test_without_stated_examples_what_programs_assert_of_each_other_decides(tmp_path: Path) -> None:
    test = "\nassert double(4) == 8\n"
    coder = Coder(tmp_path, [f"{WRONG}{test}", f"{RIGHT}{test}", f"{SUM}\nassert double(0) == 0\n", FLOAT])
    version = (await coder.turn(began("double(1) == 2", goal="Write a function that doubles a number.")))[-1]
    files = await coder.files(version)
    assert files["double.py"] == RIGHT
    assert "double(4) == 8" in files["test_double.py"]


async def test_where_nothing_can_be_read_the_reply_is_refused_with_the_cause(tmp_path: Path) -> None:
    events = await Coder(tmp_path, ["I cannot"] * 4).turn(began())
    assert [type(event) for event in events] == [ModelAnswered] * 4 + [ReplyRefused]


async def test_what_a_program_raises_and_changes_counts(tmp_path: Path) -> None:
    sandbox = JobRunner(UnsafeLocal(), (Interpreters(tmp_path / "cache").prepare,))
    goal = "f([2, 1]) raises ValueError\nassert set(f([3])) == {3}\nassert f([1.0]) == [1.0000000001]"
    programs = [
        "def f(x):\n    if len(x) > 1: raise ValueError\n    return x",
        "def f(x):\n    x.sort()",
        "import sys\nprint('noise')\nsys.exit(3)",
    ]
    questions = Questions(checks=tuple(stated_examples(goal)), calls=("f([3])", "f([2, 1])", "f(1)"))
    state = replace(began(), workspace=str(tmp_path))
    told = await try_programs(state, programs, questions, sandbox, str(tmp_path))
    assert [one.checks for one in told] == [(True, True, True), (False, False, False), (False, False, False)]
    assert told[0].probes == ("v:[3]", "e:ValueError", "e:TypeError")
    assert told[1].probes == (
        "v:None",
        "v:(changed,[1,2])".replace("changed", "'changed'"),
        "e:AttributeError",
    )
    assert told[2].probes == ("e:NameError",) * 3
