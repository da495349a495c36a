"""Planner, coder, reviewer and exemplar: what becomes of a reply, and who takes a turn."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace
from team.states import PLAN, STARTED, chat, planned, ran, reviewed, said, version

from septet.agents.records import Rehearsal
from septet.agents.run_context import RunContext
from septet.domain.base import Manifest
from septet.domain.events import (
    BaseSurveyed,
    ChallengeDecided,
    ChatStarted,
    CheckChallenged,
    Event,
    ExampleGiven,
    PersonSpoke,
    PlanProposed,
    ReplyRefused,
    TurnOpened,
    VersionWritten,
)
from septet.domain.plans import CommandSucceeds, Example, Mends, Plan, Refusal, Requirement
from septet.domain.state import State
from septet.ports import Agent, Record
from septet.runtime.bus import MemoryBus
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.stores.memory import MemoryBlobs
from septet.ways.iterate.members import (
    exemplar_agent,
    has_tests,
    with_challenge,
    with_evident_plan,
    with_stronger_model,
)
from septet.ways.iterate.replies import last_reply, propose_plan, write_version
from septet.workspace.files import Workspace
from septet.workspace.scratch import Scratch

pytestmark = pytest.mark.anyio
CODE = "```python add.py\nx = 1\n```"


class OneExample:
    """Finds the same example for every failure, or none."""

    def __init__(self, example: Example | None) -> None:
        self.example = example
        self.asked: list[str] = []

    async def learn(self, examples: Iterable[Example]) -> int:
        return len([*examples])

    async def find(self, question: str) -> Example | None:
        self.asked.append(question)
        return self.example


async def events_of(agent: Agent, state: State) -> list[Event]:
    rehearsal = Rehearsal(state)
    await rehearsal.play(agent)
    return rehearsal.events


async def test_the_exemplar_gives_an_example_for_the_newest_failure_once_or_says_that_there_is_none() -> None:
    failed = [*planned(), *version(1, "a"), *ran(1, "a", green=False), TurnOpened(speaker="exemplar")]
    failure = chat(failed).work.failure
    assert failure
    examples = OneExample(Example(title="sums", code="1 + 1", source="docs"))
    given = ExampleGiven(failure=failure, code="1 + 1", source="docs", title="sums")
    assert await events_of(exemplar_agent(examples), chat(failed)) == [given]
    assert examples.asked == [failure]
    assert await events_of(exemplar_agent(OneExample(None)), chat(failed)) == [ExampleGiven(failure=failure)]
    assert await events_of(exemplar_agent(examples), chat([*failed, given])) == [], (
        "it was given before a kill"
    )
    assert await events_of(exemplar_agent(examples), chat([STARTED])) == []


def saying(*events: Event) -> Agent:
    """An agent that records all of these but the last, which it returns."""

    async def turn(state: State, record: Record) -> Event | None:
        for event in events[:-1]:
            await record(event)
        return events[-1] if events else None

    return turn


async def test_a_stronger_model_takes_over_after_as_many_repetitions_as_the_team_says() -> None:
    usual, stronger = saying(PersonSpoke(text="usual")), saying(PersonSpoke(text="stronger"))
    agent = with_stronger_model(usual, stronger, 2)
    events = planned()
    for number, who in enumerate(("usual", "usual", "usual", "stronger"), start=1):
        (spoke,) = await events_of(agent, chat(events))
        assert spoke == PersonSpoke(text=who)
        events += [*version(number, f"{number}"), *ran(number, f"{number}", green=False)]


CHALLENGE = CheckChallenged(by="coder", item="P2", reason="it is 6")
BESIDE = f"P2: check wrong, because it is 6\n\n{CODE}"


async def test_a_challenge_beside_the_files_of_a_version_is_recorded_after_it() -> None:
    written = version(1, "a")[-1]
    opened = chat([*planned(), TurnOpened(speaker="coder")])
    answer = said("coder", BESIDE)
    assert await events_of(with_challenge(saying(answer, written)), opened) == [answer, written, CHALLENGE]
    plain = said("coder", CODE)
    assert await events_of(with_challenge(saying(plain, written)), opened) == [plain, written]
    refused = ReplyRefused(role="coder", reason="no")
    assert await events_of(with_challenge(saying(answer, refused)), opened) == [answer, refused]


async def test_a_challenge_that_a_kill_cut_off_is_recorded_when_the_turn_goes_on() -> None:
    written = version(1, "a")[-1]
    killed = [*planned(), TurnOpened(speaker="coder"), said("coder", BESIDE), written]
    assert await events_of(with_challenge(saying()), chat(killed)) == [CHALLENGE]
    assert await events_of(with_challenge(saying()), chat([*killed, CHALLENGE])) == []
    assert await events_of(with_challenge(saying()), chat(killed[:-1])) == [], "the version comes first"


@pytest.mark.parametrize(
    ("tests", "known"),
    [
        (["test_a.py"], True),
        (["test_a.py::test_one", "test_a.py::TestTwo::test_two"], True),
        (["test_a.py::test_one[3]"], True),
        (["test_a.py::test_on"], False),
        (["test_a.py::TestTwo::test_three"], False),
        (["test_a.py", "test_b.py"], False),
        (["empty.py"], False),
    ],
)
async def test_a_named_test_is_there_if_its_file_defines_it(
    tmp_path: Path, tests: list[str], known: bool
) -> None:
    text = "def test_one(): ...\n\n\nclass TestTwo:\n    async def test_two(self): ...\n"
    (tmp_path / "test_a.py").write_text(text)
    (tmp_path / "empty.py").touch()
    assert await has_tests(Workspace(tmp_path), tests) is known


PLAN_TEXT = "1. adds\n   check: command python add.py 2 3 => 5\n"
ADDS = Requirement(id="P1", text="adds", check=CommandSucceeds(command="python add.py 2 3", prints="5"))


async def proposed(text: str, *events: Event) -> Event | Refusal:
    return await propose_plan(chat([*events, TurnOpened(speaker="planner")]), text, MemoryBlobs())


async def test_a_planners_reply_is_a_plan_a_decision_or_another_check() -> None:
    plan = await proposed(PLAN_TEXT, STARTED)
    assert isinstance(plan, PlanProposed)
    assert plan.plan.items == (ADDS,)
    challenged = [*planned(), *version(1, "a"), CHALLENGE]
    stands = await proposed("P2: check stands, because 2 + 3 is 5", *challenged)
    assert stands == ChallengeDecided(by="planner", item="P2", stands=True, reason="2 + 3 is 5")
    other = await proposed(
        "P2: check wrong, because you are right; instead command python add.py 2 3 => 6", *challenged
    )
    assert isinstance(other, PlanProposed)
    assert other.plan.items == (
        PLAN.items[0],
        replace(PLAN.items[1], check=CommandSucceeds(command="python add.py 2 3", prints="6")),
    )
    assert isinstance(await proposed("I do not know.", STARTED), Refusal)


async def test_a_strict_team_wants_more_than_tests_that_the_coder_will_write() -> None:
    strict = replace(STARTED, team=replace(STARTED.team, strict=True))
    own = "1. adds\n   check: tests test_add.py\n2. prints\n   check: command python add.py 2 3 => 5\n"
    assert await proposed(own, strict) == Refusal(
        reason="P1: tests that the coder writes prove nothing; give examples or commands"
    )
    assert isinstance(await proposed(own, STARTED), PlanProposed)
    assert isinstance(await proposed(PLAN_TEXT, strict), PlanProposed)


async def test_after_a_wish_the_planners_requirements_are_added_to_the_plan() -> None:
    done = [
        *planned(),
        *version(1, "a"),
        *ran(1, "a", green=True),
        PersonSpoke(text="and print the sum twice"),
        *version(2, "b"),
    ]
    amended = await proposed("1. prints it twice\n   check: command python add.py 2 3 => 55\n", *done)
    assert isinstance(amended, PlanProposed)
    assert [item.text for item in amended.plan.items] == ["add gives the sum", "it prints", "prints it twice"]
    whole = await proposed(PLAN_TEXT, *planned())
    assert isinstance(whole, PlanProposed)
    assert len(whole.plan.items) == 1, "nobody has wished for anything: it is a plan of its own"


class AnyBlobs(MemoryBlobs):
    """Holds a content for every address: the states' files have none."""

    async def get(self, address: str) -> bytes:
        return b"y = 2\n"


async def written(text: str, *events: Event) -> Event | Refusal:
    return await write_version(chat([*planned(), *events, TurnOpened(speaker="coder")]), text, AnyBlobs())


async def test_findings_that_the_coder_passes_over_are_asked_about_once_and_its_files_are_kept() -> None:
    before = [*version(1, "a"), *ran(1, "a", green=False), *reviewed(1, accept=False)]
    silent = await written(CODE, *before)
    assert isinstance(silent, Refusal)
    assert silent.reason == (
        "no answer to F1; write 'F1: fixed, …' or 'F1: refused, because …' for each"
        "\n\nThe files are kept: they need not come again."
    )
    again = await written(CODE, *before, ReplyRefused(role="coder", reason=silent.reason))
    assert isinstance(again, VersionWritten)
    assert [(one.finding, one.answer) for one in again.answers] == [("F1", "unanswered")]
    spoken = await written(f"F1: fixed, it adds.\n\n{CODE}", *before)
    assert isinstance(spoken, VersionWritten)
    assert [(one.finding, one.answer) for one in spoken.answers] == [("F1", "fixed")]
    assert (spoken.number, spoken.note) == (2, "F1: fixed, it adds.")
    assert [file.path for file in spoken.files] == ["add.py", "test_add.py"], "what was not sent stays"


async def test_answers_to_findings_count_also_from_the_reply_that_was_refused() -> None:
    before = [*version(1, "a"), *ran(1, "a", green=False), *reviewed(1, accept=False)]
    begun = [*before, TurnOpened(speaker="coder"), said("coder", "F1: refused, because it is right")]
    refused = [*begun, ReplyRefused(role="coder", reason="no files")]
    state = chat([*planned(), *refused, said("coder", CODE)])
    after = await write_version(state, CODE, AnyBlobs())
    assert isinstance(after, VersionWritten)
    assert [(one.finding, one.answer) for one in after.answers] == [("F1", "refused")]
    assert last_reply(state, "coder", skip=CODE) == "F1: refused, because it is right"
    assert last_reply(state, "coder", skip="") == CODE
    assert last_reply(state, "reviewer", skip="revise") == ""


async def test_words_without_files_may_be_a_challenge_and_else_are_refused() -> None:
    before = [*version(1, "a"), *ran(1, "a", green=False)]
    assert await written("P2: check wrong, because it is 6", *before) == CHALLENGE
    assert isinstance(await written("I think that it works.", *before), Refusal)
    unclear = await written(f"P2: check wrong\n\n{CODE}", *before)
    assert isinstance(unclear, Refusal)
    assert unclear.reason.startswith("say why: 'P2: check wrong, because …; instead …'")


MEND = ChatStarted(goal="test_a.py::test_one fails, fix it", team=STARTED.team, workspace="/w")
PROJECT = BaseSurveyed(kind="folder", root="/w", manifest="m", tests="pytest")
PLANNING = TurnOpened(speaker="planner")


@pytest.mark.parametrize(
    ("events", "copied", "evident"),
    [
        ([MEND, PROJECT, PLANNING], True, True),
        ([MEND, PROJECT, PLANNING], False, False),
        ([MEND, PLANNING], True, False),
        ([MEND, PROJECT], True, False),
        ([MEND, PROJECT, PersonSpoke(text="no, another one"), PLANNING], True, False),
        ([MEND, PROJECT, PLANNING, PlanProposed(plan=PLAN), PLANNING], True, False),
        ([replace(MEND, goal="test_a.py::test_two fails, fix it"), PROJECT, PLANNING], True, False),
        ([replace(MEND, goal="test_a.py::test_one fails, add a menu"), PROJECT, PLANNING], True, False),
    ],
)
async def test_a_goal_that_only_names_tests_to_mend_needs_no_model_for_its_plan(
    tmp_path: Path, events: list[Event], copied: bool, evident: bool
) -> None:
    scratch = Scratch(tmp_path / "home", tmp_path, Manifest())
    scratch.base.root.mkdir(parents=True)
    (scratch.base.root / "test_a.py").write_text("def test_one(): ...\n")
    place = scratch if copied else scratch.base
    run_context = RunContext(place, UnsafeLocal(), MemoryBlobs(), MemoryBus())
    asked = PersonSpoke(text="a model was asked")
    found = await events_of(with_evident_plan(saying(asked), run_context), chat(events))
    mends = Requirement(id="P1", text="test_a.py::test_one passes", check=Mends(target="test_a.py::test_one"))
    assert found == [PlanProposed(plan=Plan(items=(mends,)), by="septet") if evident else asked]
