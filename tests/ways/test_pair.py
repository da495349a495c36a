"""The manager of a pair: its task with checks, its choice of who speaks, and when it may end."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from team.states import chat, version

from septet.agents.records import Rehearsal
from septet.agents.run_context import RunContext
from septet.domain.events import (
    ChatStarted,
    Event,
    EvidenceFound,
    ModelAnswered,
    PlanProposed,
    ReplyRefused,
    RunFinished,
    SpeakerChosen,
    Terminated,
    TurnOpened,
    VersionWritten,
)
from septet.domain.plans import CommandSucceeds, FileExists, Plan, Refusal, Requirement
from septet.domain.runs import RunResult
from septet.models.providers.scripted import Script, ScriptedModel, ScriptedTurn
from septet.runtime.bus import MemoryBus
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.stores.memory import MemoryBlobs
from septet.ways.group_chat.members import may_end
from septet.ways.pair.members import coder_agent, first_failure, manager_event, ran_well, task_agent
from septet.ways.pair.policy import PAIR, meets_task, parse_task_checks
from septet.ways.table import TEAMS
from septet.workspace.files import Workspace

pytestmark = pytest.mark.anyio
STARTED = ChatStarted(goal="add", team=TEAMS["pair"], workspace="/w")
MANAGER = next(one for one in TEAMS["pair"].members if one.role == "manager")
BEGUN: list[Event] = [STARTED, TurnOpened(speaker="manager")]
CODED: list[Event] = [STARTED, *version(1, "a"), TurnOpened(speaker="runner")]


def run(code: int) -> RunFinished:
    tree = chat(CODED).work.files
    return RunFinished(
        id="r", purpose="run", command="c", tree=f"{len(tree)}", result=RunResult(exit_code=code)
    )


def after(code: int | None, *events: Event) -> list[Event]:
    """The newest code has run and ended so."""
    written = chat(CODED).work.version
    assert written is not None
    ran = [] if code is None else [replace(run(code), tree=written.tree)]
    return [*CODED, *ran, *events, TurnOpened(speaker="manager")]


def decided(text: str, events: list[Event]) -> Event | Refusal:
    return manager_event(MANAGER, chat(events), text, PAIR, ran_well)


def test_the_manager_chooses_a_speaker_or_ends_what_has_run_well() -> None:
    assert decided("next: coder", after(0)) == SpeakerChosen(speaker="coder")
    assert decided("terminate: it works", after(0)) == Terminated(summary="it works")
    early = Refusal(reason="the newest run did not succeed, so the task is not resolved")
    assert decided("terminate: it works", after(1)) == early
    assert decided("terminate: it works", after(None)) == early
    assert decided("terminate: it works", BEGUN) == early
    assert isinstance(decided("well", after(0)), Refusal)


def test_a_manager_that_is_not_understood_twice_gives_the_floor_to_the_first_who_may_speak() -> None:
    again = ReplyRefused(role="manager", reason="no")
    refused = [*after(1), again]
    for text in ("well", "terminate: it works"):
        assert decided(text, refused) == SpeakerChosen(speaker="coder", fallback=True)
    assert decided("next: coder", refused) == SpeakerChosen(speaker="coder")
    other = [*after(1), replace(again, role="coder")]
    assert isinstance(decided("well", other), Refusal), "it was another's reply"


def test_a_group_chat_may_end_without_code_or_when_its_newest_has_run_well() -> None:
    assert may_end(chat(BEGUN))
    assert may_end(chat(after(0)))
    assert not may_end(chat(after(1)))
    assert not may_end(chat(after(None)))


CHECK = FileExists(path="out.txt")
TASK = "Write the sum.\ncheck: file out.txt\ncheck: command python main.py => 5\nnext: coder"
ASKED = Plan(
    items=(
        Requirement(id="P1", text="Write the sum.", check=CHECK),
        Requirement(
            id="P2", text="Write the sum.", check=CommandSucceeds(command="python main.py", prints="5")
        ),
    )
)


def test_the_checks_of_a_task_are_its_lines_that_say_so() -> None:
    assert parse_task_checks(TASK) == ASKED
    assert parse_task_checks("check: file out.txt") == Plan(
        items=(Requirement(id="P1", text="the task", check=CHECK),)
    )
    assert parse_task_checks("Write the sum.\nnext: coder") is None
    assert parse_task_checks("x\ncheck: judged") == Refusal(reason="nobody judges here; name another check")
    assert isinstance(parse_task_checks("x\ncheck: nonsense"), Refusal)


def test_a_task_is_met_when_every_check_of_it_holds_and_else_the_first_that_does_not_is_named() -> None:
    def state(*passed: bool) -> list[Event]:
        tree = chat(CODED).work.version
        assert tree is not None
        shown = [
            EvidenceFound(item=item.id, check=item.check, passed=holds, detail="seen", tree=tree.tree)
            for item, holds in zip(ASKED.items, passed, strict=False)
        ]
        ran = replace(run(0), tree=tree.tree)
        return [STARTED, PlanProposed(plan=ASKED, by="manager"), *CODED[1:], ran, *shown]

    assert meets_task(chat(state(True, True)))
    for passed, first in (((True, False), "P2"), ((False, False), "P1"), ((False, True), "P1")):
        assert not meets_task(chat(state(*passed)))
        assert first_failure(chat(state(*passed))) == f"{first} is not met (seen)"
    assert not meets_task(chat(CODED)), "nothing was to be met"
    assert first_failure(chat(state())) == "the newest run did not succeed"


async def turn(say: str, events: list[Event]) -> list[Event]:
    model = ScriptedModel(Script(turns=(ScriptedTurn(role="manager", say=say),)), "manager")
    context = RunContext(Workspace(Path("/nowhere")), UnsafeLocal(), MemoryBlobs(), MemoryBus())
    rehearsal = Rehearsal(chat(events))
    await rehearsal.play(task_agent(MANAGER, model, context))
    said, *rest = rehearsal.events
    assert isinstance(said, ModelAnswered)
    return rest


async def test_the_task_that_is_given_before_there_is_code_becomes_the_plan() -> None:
    assert await turn(TASK, BEGUN) == [PlanProposed(plan=ASKED, by="manager")]
    assert await turn("Go.\nnext: coder", BEGUN) == [SpeakerChosen(speaker="coder")]
    judged = "x\ncheck: judged\nnext: coder"
    (refused,) = await turn(judged, BEGUN)
    assert refused == ReplyRefused(role="manager", reason="nobody judges here; name another check")
    assert await turn(judged, [*BEGUN, refused, BEGUN[-1]]) == [SpeakerChosen(speaker="coder")], (
        "it is asked once"
    )


WORDS = "I would write a function."
BLOCK = "```python add.py\nx = 1\n```"
UNNAMED = "```python\nx = 1\n```\n\n```python\nx = 2\n```"
FIRST: list[Event] = [STARTED, TurnOpened(speaker="coder")]
SECOND: list[Event] = [*FIRST, TurnOpened(speaker="coder")]


@pytest.mark.parametrize(
    ("say", "events", "talks", "becomes"),
    [
        (WORDS, FIRST, False, None),
        (WORDS, FIRST, True, None),
        (WORDS, SECOND, False, ReplyRefused),
        (WORDS, SECOND, True, None),
        (WORDS, [STARTED, VersionWritten(number=1, files=(), tree=""), FIRST[1]], False, ReplyRefused),
        (UNNAMED, FIRST, False, ReplyRefused),
        (UNNAMED, SECOND, True, ReplyRefused),
        (BLOCK, FIRST, False, VersionWritten),
        (BLOCK, SECOND, True, VersionWritten),
    ],
)
async def test_a_coder_may_begin_with_words_and_then_has_to_send_code_unless_it_may_always_talk(
    say: str, events: list[Event], talks: bool, becomes: type[Event] | None
) -> None:
    script = Script(turns=(ScriptedTurn(role="coder", say=say),))
    coder = next(one for one in TEAMS["pair"].members if one.role == "coder")
    rehearsal = Rehearsal(chat(events))
    await rehearsal.play(
        coder_agent(coder, ScriptedModel(script, "coder"), MemoryBus(), MemoryBlobs(), talks)
    )
    said, *rest = rehearsal.events
    assert isinstance(said, ModelAnswered)
    assert [type(one) for one in rest] == ([] if becomes is None else [becomes])
