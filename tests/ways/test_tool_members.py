"""What a coder with tools is told of what the planner has read, and what becomes of the files in its last reply."""

from pathlib import Path

import pytest
from team.states import PLAN, STARTED, chat, planned, reviewed, version

from septet.agents.replies import PartRefused
from septet.agents.run_context import RunContext
from septet.domain.events import (
    CheckChallenged,
    Event,
    ModelAnswered,
    PlanProposed,
    ToolAnswered,
    ToolCalled,
    TurnOpened,
    VersionWritten,
)
from septet.domain.files import FileRef
from septet.domain.messages import Answer, ToolCall
from septet.domain.plans import Refusal
from septet.domain.state import State
from septet.runtime.bus import MemoryBus
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.stores.memory import MemoryBlobs
from septet.ways.iterate.tool_members import (
    MOST_FOUND,
    UNCHANGED,
    briefing_event,
    contains_files,
    only_changed,
    read_section,
    reviewed_version,
    shown_files,
    write_edits,
)
from septet.workspace.files import Workspace

pytestmark = pytest.mark.anyio


def after_reading(*texts: str, path: str = "") -> State:
    events: list[Event] = [STARTED, TurnOpened(speaker="planner")]
    for number, text in enumerate(texts):
        arguments = f'{{"path": "{path or number}"}}'
        events += [
            ToolCalled(id=f"1.1.{number}", by="planner", name="read", arguments=arguments),
            ToolAnswered(id=f"1.1.{number}", text=text, summary=f"read part {number}"),
        ]
    return chat(events)


def test_what_the_planner_read_last_is_told_whole_and_what_it_read_before_by_name() -> None:
    (section,) = read_section(after_reading("a" * 4_000, "b" * (MOST_FOUND - 1_000), "c" * 1_000))
    named, told = section.split("## read part 1")
    assert named.endswith("The planner also looked at this, before:\n- read part 0\n\n")
    assert "c" * 1_000 in told
    assert "aaa" not in section


def test_of_each_file_the_last_reading_is_told() -> None:
    (section,) = read_section(after_reading("its head", "its end", path="long.py"))
    assert section.endswith("before:\n- read part 0\n\n## read part 1\nits end")


def test_what_is_too_long_is_only_named() -> None:
    (section,) = read_section(after_reading("a" * (MOST_FOUND + 1)))
    assert section.endswith("before:\n- read part 0")


def test_a_planner_that_has_read_nothing_is_not_mentioned() -> None:
    assert read_section(after_reading()) == []


PLANNED = [STARTED, PlanProposed(plan=PLAN), TurnOpened(speaker="coder")]
SOUND, BROKEN = "```python a.py\nx = 1\n```", "```python b.py\nx = (\n```"
MENDED = "```python b.py\ny = 2\n```"


async def handed_in(
    folder: Path, text: str, *events: Event, blobs: MemoryBlobs | None = None
) -> Event | Refusal:
    run_context = RunContext(Workspace(folder), UnsafeLocal(), blobs or MemoryBlobs(), MemoryBus())
    return await write_edits(chat([*PLANNED, *events]), text, run_context)


def replied(text: str, *calls: ToolCall) -> ModelAnswered:
    return ModelAnswered(role="coder", answer=Answer(text=text, calls=calls))


async def test_a_reply_with_files_is_a_version_and_one_without_any_is_refused(tmp_path: Path) -> None:
    written = await handed_in(tmp_path, f"It adds.\n\n{SOUND}")
    assert isinstance(written, VersionWritten)
    assert ([one.path for one in written.files], written.number, written.note) == (["a.py"], 1, "It adds.")
    assert isinstance(await handed_in(tmp_path, "It is done."), Refusal)
    assert isinstance(await handed_in(tmp_path, "```\nx = 1\n```\n\n```\ny = 2\n```"), Refusal)


async def test_what_was_sound_in_a_refused_reply_need_not_come_again(tmp_path: Path) -> None:
    blobs, both = MemoryBlobs(), f"{SOUND}\n\n{BROKEN}"
    first = await handed_in(tmp_path, both, blobs=blobs)
    assert isinstance(first, PartRefused)
    assert ([one.path for one in first.kept], first.missing) == (["a.py"], ("b.py",))
    after = await handed_in(tmp_path, MENDED, replied(both), replied(MENDED), blobs=blobs)
    assert isinstance(after, VersionWritten)
    assert [one.path for one in after.files] == ["a.py", "b.py"]
    without = await handed_in(tmp_path, "Now it works.", replied(both), replied("Now it works."), blobs=blobs)
    assert isinstance(without, Refusal)
    assert "b.py" in without.reason


async def test_files_beside_a_call_are_not_kept(tmp_path: Path) -> None:
    both, call = f"{SOUND}\n\n{BROKEN}", ToolCall(id="1", name="look", arguments="{}")
    after = await handed_in(tmp_path, MENDED, replied(both, call), replied(MENDED))
    assert isinstance(after, VersionWritten)
    assert [one.path for one in after.files] == ["b.py"]


async def test_a_file_of_the_persons_that_was_not_read_is_not_replaced_and_the_others_are_kept(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.py").write_text("z = 3\n")
    mine = "```python mine.py\nz = 4\n```"
    refused = await handed_in(tmp_path, f"{SOUND}\n\n{mine}")
    assert isinstance(refused, PartRefused)
    assert refused.reason.startswith("mine.py: there already, and not read by you; read it, or use edit")
    assert ([one.path for one in refused.kept], refused.missing) == (["a.py"], ("mine.py",))
    worse = await handed_in(tmp_path, f"{SOUND}\n\n{mine}\n\n{BROKEN}")
    assert isinstance(worse, PartRefused)
    assert [one.path for one in worse.kept] == ["a.py"]
    assert sorted(worse.missing) == ["b.py", "mine.py"]


async def test_a_challenge_alone_is_no_version(tmp_path: Path) -> None:
    said = await handed_in(tmp_path, "P2: check wrong, because it is 6")
    assert said == CheckChallenged(by="coder", item="P2", reason="it is 6")
    beside = await handed_in(tmp_path, f"P2: check wrong, because it is 6\n\n{SOUND}")
    assert isinstance(beside, VersionWritten)


async def test_the_same_files_again_are_refused_once(tmp_path: Path) -> None:
    blobs = MemoryBlobs()
    first = await handed_in(tmp_path, SOUND, blobs=blobs)
    assert isinstance(first, VersionWritten)
    opened = TurnOpened(speaker="coder")
    assert await handed_in(tmp_path, SOUND, first, opened, blobs=blobs) == Refusal(reason=UNCHANGED)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (SOUND, set[str]()),
        ("```diff a.py\n@@\n-x = 1\n+x = 2\n```", {"a.py"}),
        (f"```diff a.py\n@@\n-x = 1\n+x = 2\n```\n\n{SOUND}", set[str]()),
    ],
)
def test_a_file_that_a_reply_changes_and_does_not_send_whole_was_seen(text: str, changed: set[str]) -> None:
    assert only_changed(text) == changed


@pytest.mark.parametrize(
    ("text", "has"),
    [(SOUND, True), ("```\nx\n```", False), ("words", False), ("```python a.py\nx", True), ("", False)],
)
def test_a_reply_holds_files_if_a_block_has_a_name_or_none_can_be_read(text: str, has: bool) -> None:
    assert contains_files(text) is has


def test_the_persons_files_that_were_shown_are_told_with_the_oldest_content_first() -> None:
    refs = [FileRef(path="a.py", sha256=one, size=1) for one in "12"]
    events: list[Event] = []
    for number, one in enumerate(refs):
        events += [
            ToolCalled(id=f"{number}", by="coder", name="read", arguments="{}"),
            ToolAnswered(id=f"{number}", text="", shown=(one,)),
        ]
    assert list(shown_files(chat([*PLANNED, *events]))) == refs


def test_the_version_that_was_reviewed_last_is_found() -> None:
    before = [*planned(), *version(1, "a"), *reviewed(1, accept=False)]
    assert reviewed_version(chat(planned())) is None
    found = reviewed_version(chat([*before, *version(2, "b")]))
    assert found is not None
    assert found.number == 1


async def test_a_coder_is_briefed_whole_the_first_time_and_then_with_what_is_new(tmp_path: Path) -> None:
    run_context = RunContext(Workspace(tmp_path), UnsafeLocal(), MemoryBlobs(), MemoryBus())
    spec = next(one for one in STARTED.team.members if one.role == "coder")
    looked: list[Event] = [
        STARTED,
        TurnOpened(speaker="planner"),
        ToolCalled(id="1.1", by="planner", name="read", arguments='{"path": "a.py"}'),
        ToolAnswered(id="1.1", text="its head", summary="read a.py"),
        *PLANNED[1:],
    ]
    first = await briefing_event(spec, chat(looked), run_context)
    assert first.text.startswith("# Goal\nadd numbers\n\n# Plan\n1. add gives the sum\n")
    assert "## read a.py\nits head" in first.text
    assert first.system
    again = [*looked, first, replied("Let me look."), TurnOpened(speaker="coder")]
    second = await briefing_event(spec, chat(again), run_context)
    assert (second.text, second.system) == ("Go on.", "")
