"""Members that think with a model: what becomes of an answer that they cannot mean."""

import pytest
from msgspec.structs import replace
from team.states import PLAN, STARTED, chat, planned, ran, reviewed, version

from septet.agents.records import Rehearsal
from septet.agents.reply_files import keep_file
from septet.domain.events import (
    Event,
    ModelAnswered,
    PlanProposed,
    ReplyRefused,
    ReviewGiven,
    TurnOpened,
    VersionWritten,
)
from septet.domain.files import tree_of
from septet.domain.messages import Answer
from septet.domain.plans import FileExists, Refusal
from septet.domain.replies import CodeFile
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.models.providers.scripted import Script, ScriptedCall, ScriptedModel, ScriptedTurn
from septet.ports import Agent
from septet.runtime.bus import MemoryBus
from septet.stores.memory import MemoryBlobs
from septet.team.evidence import regressions
from septet.ways.group_chat.members import talk_agent
from septet.ways.iterate.briefing import briefing
from septet.ways.iterate.replies import give_review, role_agent, write_version
from septet.ways.pair.members import manager_agent, pair_brief, ran_well
from septet.ways.pair.policy import PAIR

pytestmark = pytest.mark.anyio

CALLS = (ScriptedCall(name="read_file", arguments={"path": "add.py"}), ScriptedCall(name="run"))


def agent_of(member: RoleSpec, turn: ScriptedTurn) -> Agent:
    model, bus = ScriptedModel(Script(turns=(turn,)), "calling"), MemoryBus()
    match member.role:
        case "writer":
            return talk_agent(member, model, bus)
        case "manager":
            return manager_agent(member, model, bus, pair_brief(member, MemoryBlobs()), PAIR, ran_well)
        case _:
            return role_agent(member, model, bus, MemoryBlobs())


async def events_of(agent: Agent, state: State) -> list[Event]:
    rehearsal = Rehearsal(state)
    await rehearsal.play(agent)
    return rehearsal.events


@pytest.mark.parametrize("role", ["planner", "coder", "reviewer", "manager", "writer"])
@pytest.mark.parametrize("words", ["", "I look at the file first."])
async def test_a_tool_call_of_a_member_without_tools_is_answered(role: str, words: str) -> None:
    member = RoleSpec(name=role, role=role)
    begun = [STARTED] if role in ("planner", "manager", "writer") else planned()
    state = chat([*begun, TurnOpened(speaker=role)])
    said, refused = await events_of(agent_of(member, ScriptedTurn(role=role, say=words, calls=CALLS)), state)
    assert isinstance(said, ModelAnswered)
    assert refused == ReplyRefused(
        role=role, reason="you have no tools here: read_file and run were not called; reply in text"
    )


async def test_an_empty_message_is_asked_for_again() -> None:
    writer = RoleSpec(name="writer", role="writer")
    state = chat([STARTED, TurnOpened(speaker="writer")])
    _, refused = await events_of(agent_of(writer, ScriptedTurn(role="writer", say="  ")), state)
    assert refused == ReplyRefused(role="writer", reason="the message is empty")


class AnyBlobs(MemoryBlobs):
    async def get(self, address: str) -> bytes:
        return b"code"


REGRESSION = "a regression: version 1 met it, this one does not (1 passed)"


async def test_a_requirement_that_an_earlier_version_met_becomes_a_finding_that_the_coder_is_told() -> None:
    """Whatever the reviewer says: here it overlooks that the newest version fails what the first one passed."""
    first = [*planned(), *version(1, "a"), *ran(1, "a", green=True), *reviewed(1, accept=False)]
    second = [*version(2, "b"), *ran(2, "b", green=False), TurnOpened(speaker="reviewer")]
    state = chat([*first, *second])
    review = await give_review(state, "verdict: accept", AnyBlobs())
    assert isinstance(review, ReviewGiven)
    assert review.verdict == "revise"
    assert [(one.item, one.severity, one.text) for one in review.findings] == [("P1", "must", REGRESSION)]
    told = chat([*first, *second, review, TurnOpened(speaker="coder")])
    _, user = briefing(RoleSpec(name="coder", role="coder"), told, {})
    assert f"F1 [must] P1 (runner): {REGRESSION}" in user.text


async def test_what_no_version_has_met_or_another_plan_asked_for_is_no_regression() -> None:
    begun = [*planned(), *version(1, "a"), *ran(1, "a", green=False), *reviewed(1, accept=False)]
    assert regressions(chat([*begun, *version(2, "b"), *ran(2, "b", green=False)])) == []
    other = PlanProposed(plan=replace(PLAN, items=(replace(PLAN.items[0], check=FileExists(path="add.py")),)))
    green = [*planned(), *version(1, "a"), *ran(1, "a", green=True)]
    assert regressions(chat([*green, *version(2, "b"), *ran(2, "b", green=False)])) != []
    assert regressions(chat([*green, other, *version(2, "b"), *ran(2, "b", green=False)])) == []


async def written(reply: str, blobs: MemoryBlobs, **before: str) -> dict[str, str] | Refusal:
    """What a version holds after this reply of the coder, or why there is none."""
    files = tuple(
        [await keep_file(CodeFile(path=f"{name}.py", text=text), blobs) for name, text in before.items()]
    )
    known = [VersionWritten(number=1, files=files, tree=tree_of(files))] if files else []
    event = await write_version(chat([*planned(), *known, TurnOpened(speaker="coder")]), reply, blobs)
    if not isinstance(event, VersionWritten):
        assert isinstance(event, Refusal)
        return event
    return {file.path: (await blobs.get(file.sha256)).decode() for file in event.files}


async def test_a_diff_changes_the_file_and_does_not_become_it() -> None:
    hunk = "@@ -1,2 +1,2 @@\n def add(a, b):\n-    return 0\n+    return a + b\n"
    reply = f"```diff\n--- a/add.py\n+++ b/add.py\n{hunk}```"
    code = "def add(a, b):\n    return 0\n"
    after = await written(reply, MemoryBlobs(), add=code, test_add="x = 1\n")
    assert after == {"add.py": code.replace("0", "a + b"), "test_add.py": "x = 1\n"}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("```python add.py\ndef add(a, b):\n    ...\n```", "add.py, line 2: code was left out"),
        ("```python add.py\nx = 1\n# rest of the code\n```", "add.py, line 2: code was left out"),
        ("```text .git/hooks/pre-commit\nls\n```", "belongs to the repository"),
        (f"```python {'a' * 300}.py\nx = 1\n```", "is too long"),
        ("```python Add.py\nx = 1\n```", "differs only in case from 'add.py'"),
        ("```python\nx = 1\n```", "1 code block without a file name"),
    ],
)
async def test_what_no_version_should_hold_is_refused_with_the_reason(reply: str, reason: str) -> None:
    after = await written(reply, MemoryBlobs(), add="y = 1\n", test_add="z = 1\n")
    assert isinstance(after, Refusal)
    assert reason in after.reason


async def test_what_was_there_before_is_not_called_left_out() -> None:
    stub = "def later():\n    ...\n\n\nx = 1\n"
    edit = "```python stub.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n```"
    assert await written(edit, MemoryBlobs(), stub=stub) == {"stub.py": stub.replace("1", "2")}


async def test_a_file_that_is_there_keeps_its_name() -> None:
    """A repository may have two names that differ only in case, or one that some systems do not have."""
    files = {"add": "x = 1\n", "Add": "y = 1\n", "aux": "z = 1\n"}
    for name in files:
        after = await written(f"```python {name}.py\nw = 2\n```", MemoryBlobs(), **files)
        assert not isinstance(after, Refusal)
        assert after[f"{name}.py"] == "w = 2\n"


async def test_a_single_unnamed_block_is_the_only_file_there_is() -> None:
    assert await written("```python\nx = 2\n```", MemoryBlobs(), tool="x = 1\n") == {"tool.py": "x = 2\n"}
    assert await written("```python\nx = 2\n```", MemoryBlobs()) == {"main.py": "x = 2\n"}


@pytest.mark.parametrize("form", ["", "text", "small"])
async def test_a_cut_answer_is_never_taken_as_whole(form: str) -> None:
    coder = RoleSpec(name="coder", role="coder", form=form)  # pyright: ignore[reportArgumentType]
    answer = Answer(text="```python main.py\nprint(1)\n```\nand now the tes", stop="length")
    cut = ModelAnswered(role="coder", answer=answer)
    state = chat([*planned(), TurnOpened(speaker="coder"), cut])
    (event,) = await events_of(agent_of(coder, ScriptedTurn(role="coder")), state)
    if form == "small":  # it is stopped on purpose, where it repeats or explains itself
        assert isinstance(event, VersionWritten)
    else:
        assert isinstance(event, ReplyRefused)
        assert "was cut; it ends with:\n```python main.py" in event.reason
