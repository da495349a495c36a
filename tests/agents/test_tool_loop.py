"""A member's turn with tools, event by event: what is asked, what is run, what the answers say, and how it ends."""

import dataclasses
from collections.abc import AsyncGenerator, Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace
from team.states import chat, planned, version

from septet.agents.run_context import RunContext
from septet.agents.tool_context import CallContext
from septet.agents.tool_loop import (
    ENOUGH,
    HANDED_IN,
    LONGEST_ANSWER,
    LOST,
    MOST_CALLS,
    SHORT,
    ToolMember,
    member_messages,
    short_text,
    shorten_answer,
    tool_agent,
    untold,
)
from septet.domain.events import (
    Event,
    FactsChanged,
    MemberBriefed,
    ModelAnswered,
    ReplyRefused,
    StopRequested,
    ToolAnswered,
    ToolCalled,
    TurnOpened,
    VersionWritten,
)
from septet.domain.files import FileChange
from septet.domain.messages import Answer, Message, Request, ToolCall
from septet.domain.plans import Refusal
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.errors import Overdrawn
from septet.models.wrappers.streams import Item
from septet.runtime.bus import MemoryBus
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.stores.memory import MemoryBlobs
from septet.team.questions import NO_ANSWER
from septet.tools.registry import Tool, ToolContext, ToolResult, tool_of_function
from septet.workspace.files import Workspace

pytestmark = pytest.mark.anyio


def ended(words: str) -> VersionWritten:
    """How a turn ends here."""
    return VersionWritten(number=1, files=(), tree="", note=words)


async def look(context: ToolContext) -> str:
    """Say what is there."""
    return "nothing"


async def write(context: ToolContext, path: str, text: str) -> str:
    """Write a file."""
    context.write(path, text)
    return "written"


async def remove(context: ToolContext, path: str) -> str:
    """Delete a file."""
    context.write(path, None)
    return "gone"


async def finish(context: ToolContext) -> ToolResult:
    """Hand in."""
    return ToolResult(text="all met", summary="met", ready=True)


MADE = (
    FileChange(path="out.txt", kind="new", sha256=sha256(b"out").hexdigest(), size=3),
    FileChange(path="big.bin", kind="new", size=9),
    FileChange(path="old.txt", kind="deleted"),
)


async def build(context: ToolContext, ends_well: bool) -> ToolResult | Refusal:
    """Run a program that makes files."""
    assert isinstance(context, CallContext)
    context.made = MADE
    return ToolResult(text="built") if ends_well else Refusal(reason="broken")


async def ask(context: ToolContext, question: str) -> Refusal:
    """Ask the person."""
    return Refusal(reason=NO_ANSWER)


def toolbox() -> dict[str, Tool]:
    made = [tool_of_function(one) for one in (look, write, remove, finish)]
    made.append(dataclasses.replace(tool_of_function(build), keeps_output=True))
    made.append(dataclasses.replace(tool_of_function(build), name="try_it"))
    made.append(dataclasses.replace(tool_of_function(ask), asks=True))
    made.append(dataclasses.replace(tool_of_function(look), name="once", repeatable=False))
    made.append(dataclasses.replace(tool_of_function(write), name="change", edits=True))
    made.append(dataclasses.replace(tool_of_function(finish), name="check", needs_edits=True))
    return {one.name: one for one in made}


class Script:
    """A model that gives one answer after the other, and remembers what it was asked."""

    def __init__(self, answers: Sequence[Answer | Exception]) -> None:
        self._answers = [*answers]
        self.asked: list[tuple[Message, ...]] = []
        self.offered: list[str] = []

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        self.asked.append(request.messages)
        self.offered = [offer.name for offer in request.tools]
        item = self._answers.pop(0)
        if isinstance(item, Exception):
            raise item
        yield item


class Played:
    """One turn of the coder: its events, and how it ended."""

    def __init__(self, folder: Path, *answers: Answer | Exception, before: Sequence[Event] = ()) -> None:
        self.events: list[Event] = [*planned(), TurnOpened(speaker="coder"), *before]
        self.start = len(self.events)
        self.blobs = MemoryBlobs()
        self.workspace = Workspace(folder)
        self.model = Script(answers)
        self.settled: list[str] = []
        self.refusals: list[str] = []
        self.stop_after = 0
        self.said_by_person: Event | None = None
        self.asked_person = 0

    async def record(self, event: Event) -> State:
        self.events.append(event)
        if isinstance(event, ToolAnswered) and self.stop_after == 1:
            self.events.append(StopRequested())
        return chat(self.events)

    async def brief(self, state: State) -> MemberBriefed:
        return MemberBriefed(member="coder", text="Go.", system="You are the coder.")

    async def settle(self, state: State, words: str) -> Event | Refusal:
        self.settled.append(words)
        if self.refusals:
            return Refusal(reason=self.refusals.pop(0))
        return ended(words)

    async def person(self, state: State, record: object) -> Event | None:
        self.asked_person += 1
        return self.said_by_person

    async def tools(self) -> dict[str, Tool]:
        return toolbox()

    async def play(self) -> Event | None:
        run_context = RunContext(self.workspace, UnsafeLocal(), self.blobs, MemoryBus())
        spec = RoleSpec(name="coder", role="coder")
        member = ToolMember(spec, self.model, run_context, self.tools, self.brief, self.settle, self.person)
        return await tool_agent(member)(chat(self.events), self.record)

    @property
    def new(self) -> list[Event]:
        return self.events[self.start :]

    @property
    def results(self) -> list[ToolAnswered]:
        return [event for event in self.new if isinstance(event, ToolAnswered)]


def says(text: str, *calls: tuple[str, str]) -> Answer:
    wished = tuple(
        ToolCall(id=f"c{place}", name=name, arguments=arguments)
        for place, (name, arguments) in enumerate(calls, start=1)
    )
    return Answer(text=text, calls=wished)


async def test_calls_are_run_in_order_and_the_words_after_them_end_the_turn(tmp_path: Path) -> None:
    played = Played(
        tmp_path,
        says("First.", ("look", "{}"), ("write", '{"path": "a.py", "text": "x = 1\\n"}')),
        says("Done."),
    )
    assert await played.play() == ended("Done.")
    kinds = [type(event) for event in played.new]
    call = [ToolCalled, ToolAnswered]
    assert kinds == [MemberBriefed, ModelAnswered, *call, *call, ModelAnswered]
    calls = [event for event in played.new if isinstance(event, ToolCalled)]
    assert [(one.by, one.name, one.call) for one in calls] == [
        ("coder", "look", "c1"),
        ("coder", "write", "c2"),
    ]
    turn = calls[0].id.split(".")[0]
    assert [one.id for one in calls] == [f"{turn}.1.1", f"{turn}.1.2"] == [one.id for one in played.results]
    first, second = played.results
    assert (first.text, first.failed, first.changes) == ("nothing", False, ())
    assert second.text.startswith("written\n")
    assert "+x = 1" in second.text
    content = b"x = 1\n"
    digest = sha256(content).hexdigest()
    assert [(one.path, one.kind, one.sha256) for one in second.changes] == [("a.py", "new", digest)]
    assert await played.blobs.get(digest) == content
    assert (tmp_path / "a.py").read_bytes() == content, "the next call finds it"
    assert played.settled == ["Done."]
    assert played.model.offered == [*toolbox()]


async def test_the_member_is_told_what_its_calls_gave_under_their_ids(tmp_path: Path) -> None:
    played = Played(
        tmp_path, says("First.", ("look", "{}"), ("nothing", "{}"), ("look", "[]")), says("Done.")
    )
    await played.play()
    system, user, said, *results = played.model.asked[1]
    assert (system, user) == (
        Message(role="system", text="You are the coder."),
        Message(role="user", text="Go."),
    )
    assert (said.role, said.text, len(said.calls)) == ("assistant", "First.", 3)
    assert [(one.role, one.call) for one in results] == [("tool", "c1"), ("tool", "c2"), ("tool", "c3")]
    assert results[0].text == "nothing"
    assert results[1].text == f"there is no tool 'nothing'; the tools are {', '.join(toolbox())}"
    assert results[2].text.startswith("look cannot be called like that: ")
    assert [one.failed for one in played.results] == [False, True, True]


async def test_edits_of_which_one_was_refused_are_neither_checked_nor_handed_in(tmp_path: Path) -> None:
    change, wrong = ("change", '{"path": "a.py", "text": "x = 1\\n"}'), ("change", '{"path": "b.py"}')
    played = Played(
        tmp_path,
        says("", wrong, change, ("look", "{}"), ("check", "{}")),
        says("", ("check", "{}")),
    )
    assert await played.play() == ended(HANDED_IN)
    assert [one.failed for one in played.results] == [True, False, False, True, False]
    assert (
        played.results[3].text
        == "check was not carried out, for change before it was refused: mend that first"
    )
    assert (tmp_path / "a.py").exists(), "what was not refused is done"


async def test_what_a_tool_made_is_kept_if_it_keeps_files_and_did_not_fail(tmp_path: Path) -> None:
    well, badly = '{"ends_well": true}', '{"ends_well": false}'
    played = Played(
        tmp_path,
        says("", ("build", badly), ("try_it", well), ("build", well), ("look", "{}")),
        says("Done."),
    )
    await played.blobs.put(b"out")
    await played.play()
    failed, tried, built, looked = played.results
    assert (failed.changes, failed.failed, tried.changes, looked.changes) == ((), True, (), ())
    assert [one.path for one in built.changes] == ["out.txt", "old.txt"], "the large one was not stored"
    assert (tmp_path / "out.txt").read_bytes() == b"out"


async def test_a_file_of_the_persons_is_not_deleted_and_not_overwritten_unseen(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine\n")
    played = Played(
        tmp_path,
        says("", ("remove", '{"path": "mine.txt"}'), ("write", '{"path": "mine.txt", "text": "x\\n"}')),
        says("Done."),
    )
    await played.play()
    kept, refused = played.results
    assert (kept.failed, kept.text) == (
        True,
        "mine.txt: a file of the person's, which only the person deletes",
    )
    assert refused.failed
    assert refused.text.startswith("'mine.txt': in the folder already, unknown to you; nothing was written.")
    assert [(one.path, one.size) for one in refused.shown] == [("mine.txt", 5)]
    assert (tmp_path / "mine.txt").read_text() == "mine\n"


async def test_who_hands_in_by_a_call_needs_no_word(tmp_path: Path) -> None:
    played = Played(tmp_path, says("", ("finish", "{}")))
    assert await played.play() == ended(HANDED_IN)
    (answer,) = played.results
    assert (answer.text, answer.summary, answer.ready) == ("all met", "met", True)
    worded = Played(tmp_path, says("Mine.", ("look", "{}"), ("finish", "{}")))
    assert await worded.play() == ended("Mine.")


async def test_a_refused_reply_is_complained_about_as_often_as_the_team_says(tmp_path: Path) -> None:
    most = chat(planned()).team.refusals
    played = Played(tmp_path, *[says(f"try {number}") for number in range(most + 1)])
    played.refusals = [f"no {number}" for number in range(most + 1)]
    last = await played.play()
    assert isinstance(last, ReplyRefused)
    assert (last.role, last.reason) == ("coder", f"no {most}")
    complaints = [one.text for one in played.new if isinstance(one, MemberBriefed)]
    assert complaints == ["Go.", *(f"no {number}" for number in range(most))]


async def test_after_enough_calls_only_words_count(tmp_path: Path) -> None:
    one = ("look", "{}")
    answers = [says("", *[one] * (MOST_CALLS - 1)), says("", one), says("Done.")]
    played = Played(tmp_path, *answers)
    assert await played.play() == ended("Done.")
    assert len(played.results) == MOST_CALLS
    told = [event.text for event in played.new if isinstance(event, MemberBriefed)]
    assert told == ["Go.", ENOUGH]
    stubborn = Played(tmp_path, says("", *[one] * MOST_CALLS), says("More.", one))
    assert await stubborn.play() == ended("More.")
    assert len(stubborn.results) == MOST_CALLS


async def test_what_is_to_be_remembered_is_kept_unless_the_answer_calls(tmp_path: Path) -> None:
    words = "Done.\nremember: Use tabs."
    played = Played(tmp_path, says(words, ("look", "{}")), says(words))
    await played.play()
    assert [type(event) for event in played.new if isinstance(event, FactsChanged)] == [FactsChanged]
    assert isinstance(played.new[-1], FactsChanged)


async def test_a_stopped_turn_ends_with_the_edits_so_far_or_with_nothing(tmp_path: Path) -> None:
    for calls, settled in (
        ([("look", "{}"), ("look", "{}")], []),
        ([("write", '{"path": "a.py", "text": "x\\n"}'), ("look", "{}")], [""]),
    ):
        played = Played(tmp_path, says("", *calls), Overdrawn("too dear"))
        with pytest.raises(Overdrawn):
            await played.play()
        assert played.settled == settled
        assert (ended("") in played.new) is bool(settled)


async def test_a_question_is_the_persons_and_an_answer_of_none_is_said(tmp_path: Path) -> None:
    played = Played(tmp_path, says("", ("ask", '{"question": "Tabs?"}')), says("Done."))
    number = f"{chat(played.events).floor.turn.number}.1.1"  # pyright: ignore[reportOptionalMemberAccess]  # it is open
    played.said_by_person = ToolAnswered(id=number, text="Yes.")
    await played.play()
    assert (played.asked_person, [one.text for one in played.results]) == (1, ["Yes."])
    silent = Played(tmp_path, says("", ("ask", '{"question": "Tabs?"}')), says("Done."))
    await silent.play()
    assert (silent.asked_person, [one.text for one in silent.results]) == (1, [NO_ANSWER])
    empty = Played(tmp_path, says("", ("ask", '{"question": " "}')), says("Done."))
    await empty.play()
    assert (empty.asked_person, empty.results[0].failed) == (0, True)


async def test_five_questions_are_the_persons(tmp_path: Path) -> None:
    asking = [("ask", '{"question": "Tabs?"}')] * 6
    played = Played(tmp_path, says("", *asking), says("Done."))
    await played.play()
    assert played.asked_person == 5


@pytest.mark.parametrize(
    ("name", "answered"),
    [("look", "nothing"), ("once", "once was interrupted; whether it took effect is not known")],
)
async def test_a_call_that_a_crash_interrupted_is_repeated_only_if_that_does_no_harm(
    tmp_path: Path, name: str, answered: str
) -> None:
    turn = chat([*planned(), TurnOpened(speaker="coder")]).floor.turn
    assert turn is not None
    said = ModelAnswered(role="coder", answer=says("", (name, "{}"), ("look", "{}")))
    called = ToolCalled(id=f"{turn.number}.1.1", by="coder", name=name, arguments="{}", call="c1")
    briefed = MemberBriefed(member="coder", text="Go.")
    played = Played(tmp_path, says("Done."), before=[briefed, said, called])
    await played.play()
    assert [one.text for one in played.results] == [answered, "nothing"]
    assert [type(event) for event in played.new] == [ToolAnswered, ToolCalled, ToolAnswered, ModelAnswered]


async def test_a_turn_that_is_over_or_was_never_opened_does_nothing(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.events = [*planned()]
    assert await played.play() is None
    played.events = [*planned(), TurnOpened(speaker="coder"), *version(1, "a")[1:]]
    assert await played.play() is None


async def test_the_middle_of_a_long_answer_is_a_blob() -> None:
    blobs = MemoryBlobs()
    fits = ToolAnswered(id="1", text="x" * LONGEST_ANSWER)
    assert await shorten_answer(fits, blobs) == fits
    for text in ("x" * (LONGEST_ANSWER + 1), "ä" * LONGEST_ANSWER):
        told = await shorten_answer(ToolAnswered(id="1", text=text), blobs)
        assert len(told.text.encode()) <= LONGEST_ANSWER
        assert len(told.text.encode()) > LONGEST_ANSWER - 250
        assert (await blobs.get(told.whole)).decode() == text


def test_a_shortened_answer_is_its_summary_or_its_first_line() -> None:
    whole = ToolAnswered(id="1", text="x" * SHORT)
    assert short_text(whole) == whole.text
    text = "y" * 150 + "\n" + "x" * SHORT
    rest = f"; the rest of {len(text)} characters is left out, call again what you need)"
    assert short_text(ToolAnswered(id="1", text=text)) == "(" + "y" * 150 + rest
    assert short_text(ToolAnswered(id="1", text=text, summary="read a.py")) == "(read a.py" + rest
    one_line = ToolAnswered(id="1", text="z" * (SHORT + 1))
    assert short_text(one_line).startswith("(" + "z" * (SHORT // 2) + "; the rest of 401 ")


def test_calls_that_were_never_run_are_answered_before_the_next_message() -> None:
    calls = says("", ("look", "{}"), ("look", "{}"))
    briefed = MemberBriefed(member="coder", text="Go.", images=("0" * 64,))
    other = ModelAnswered(role="planner", answer=Answer(text="not mine"))
    early = ModelAnswered(role="coder", answer=Answer(text="before any briefing"))
    thoughtful = replace(Answer(text="Well."), replay='{"reasoning": "hm"}')
    state = chat(
        [
            *planned(),
            early,
            TurnOpened(speaker="coder"),
            briefed,
            ModelAnswered(role="coder", answer=replace(calls, replay="r")),
            other,
            ModelAnswered(role="coder", answer=thoughtful),
        ]
    )
    assert member_messages(state, "coder") == (
        Message(role="user", text="Go.", images=("0" * 64,)),
        Message(role="assistant", text="", calls=calls.calls, replay="r"),
        Message(role="tool", text=LOST, call="c1"),
        Message(role="tool", text=LOST, call="c2"),
        Message(role="assistant", text="Well."),
    )
    assert member_messages(state, "tester") == ()


def test_a_section_is_told_once() -> None:
    told = [Message(role="user", text="# Goal\nx\n# Plan\ny"), Message(role="assistant", text="# Other")]
    assert untold(told, ["# Plan\ny", "# Other", "# Plan\nz"]) == ["# Other", "# Plan\nz"]
