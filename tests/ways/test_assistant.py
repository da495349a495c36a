"""The assistant's members: who hears what, who answers next, and which answers the person gets."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from team.states import chat

from septet.agents.run_context import RunContext
from septet.domain.citations import Reference, References, Source
from septet.domain.events import (
    AnswerGiven,
    BaseSurveyed,
    ChatStarted,
    DataDescribed,
    Event,
    ModelAnswered,
    PersonSpoke,
    ReplyRefused,
    RunFinished,
    ToolAnswered,
    ToolCalled,
    TurnOpened,
    VersionWritten,
)
from septet.domain.files import FileChange
from septet.domain.messages import Answer, Message, ToolCall
from septet.domain.plans import Refusal
from septet.domain.runs import RunResult
from septet.domain.state import State
from septet.domain.teams import RoleSpec, TeamSpec
from septet.runtime.bus import MemoryBus
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.stores.memory import MemoryBlobs
from septet.team.floor import End, Speak
from septet.ways.assistant.members import (
    answered_already,
    part_of,
    references_in,
    send_trouble,
    version_due,
)
from septet.ways.assistant.policy import (
    NO_SUCH_LINE,
    answer,
    answer_text,
    answer_words,
    assistant_briefing,
    direct,
    member_thread,
    message_in_work,
    message_sent_by,
    next_recipient,
    recipients,
    spokesperson,
    waits_for,
    wants_work,
)
from septet.ways.prompts import prompt_text
from septet.workspace.files import Workspace

TEAM = TeamSpec(
    name="t",
    floor="assistant",
    members=tuple(RoleSpec(name=name, role=name) for name in ("proxy", "coder", "critic")),
)
STARTED = ChatStarted(goal="what is it?", team=TEAM, workspace="/w")
PROJECT = BaseSurveyed(kind="git", root="/w")
DATA = DataDescribed(path="d.csv", sha256="1", size=1, card="3 rows")
PROXY, CODER, _ = TEAM.members


def tool(number: str, by: str, name: str, **arguments: object) -> ToolCalled:
    text = msgspec.json.encode(arguments).decode()
    return ToolCalled(id=number, by=by, name=name, arguments=text, call=f"p{number}")


def send(number: str, by: str, to: str, text: str) -> ToolCalled:
    return tool(number, by, "SendMessage", recipient=to, message=text)


def told(number: str, text: str, *, failed: bool = False) -> ToolAnswered:
    return ToolAnswered(id=number, text=text, failed=failed)


def says(role: str, text: str, *calls: str) -> ModelAnswered:
    made = tuple(ToolCall(id=one, name="x", arguments="{}") for one in calls)
    return ModelAnswered(role=role, answer=Answer(text=text, calls=made))


def state_of(*events: Event, started: ChatStarted = STARTED) -> State:
    return chat([started, TurnOpened(speaker="proxy"), *events])


ASKED = send("1.1", "proxy", "coder", "count it")
ASIDE = send("2.1", "coder", "critic", "is it right?")


def test_a_message_to_a_member_has_a_recipient_and_a_text() -> None:
    sent = message_sent_by(ASKED)
    assert sent is not None
    assert (sent.recipient, sent.message) == ("coder", "count it")
    assert message_sent_by(replace(ASKED, name="read")) is None
    assert message_sent_by(replace(ASKED, arguments='{"recipient": 1}')) is None


def test_the_deepest_question_is_answered_first_and_the_persons_last_and_once() -> None:
    assert direct(state_of()) == Speak(speaker="proxy")
    assert direct(state_of(ASKED)) == Speak(speaker="coder")
    assert direct(state_of(ASKED, ASIDE)) == Speak(speaker="critic"), "the coder waits for an answer"
    assert direct(state_of(ASKED, ASIDE, told("2.1", "yes"))) == Speak(speaker="coder")
    assert direct(state_of(ASKED, told("1.1", "3"))) == Speak(speaker="proxy")
    given = AnswerGiven(by="proxy", text="3", ground="complete")
    assert direct(state_of(ASKED, told("1.1", "3"), given)) == End(reason="answered")
    assert next_recipient(state_of()) is None
    assert message_in_work(state_of(ASKED, ASIDE), "coder") == ASKED
    assert message_in_work(state_of(ASKED), "critic") is None


def test_who_waits_for_a_member_also_through_others_cannot_be_asked_by_it() -> None:
    state = state_of(ASKED, ASIDE)
    assert waits_for(state, "critic") == {"coder", "proxy"}
    assert waits_for(state, "coder") == {"proxy"}
    assert waits_for(state, "proxy") == set()
    back = send("3.1", "critic", "coder", "why?")
    assert send_trouble(state, back) == Refusal(
        reason="coder waits for your answer: answer instead of asking"
    )
    assert send_trouble(state_of(ASKED), ASIDE) is None
    assert send_trouble(state, replace(back, arguments="{}")) == Refusal(
        reason="SendMessage needs a `recipient` and a `message`, both texts"
    )
    assert send_trouble(state, send("3.1", "critic", "proxy", "x")) == Refusal(
        reason="there is no 'proxy' to write to; the recipients are coder"
    )


def test_anybody_may_write_to_all_but_itself_and_the_one_who_talks_with_the_person() -> None:
    assert recipients(TEAM, "proxy") == ["coder", "critic"]
    assert recipients(TEAM, "coder") == ["critic"]
    assert spokesperson(TEAM) == "proxy"
    assert spokesperson(replace(TEAM, members=TEAM.members[1:])) == "coder"


def thread(state: State, name: str) -> list[tuple[str, str]]:
    return [(one.role, one.text) for one in member_thread(state, name)]


def test_a_member_hears_its_own_thread_with_whoever_asked_it() -> None:
    read = tool("2.2", "coder", "read", path="a")
    state = state_of(
        says("proxy", "I ask", "p1.1"),
        ASKED,
        says("coder", "I look", "p2.2"),
        read,
        told("2.2", "a = 1"),
        says("critic", "unheard"),
        ASIDE,
    )
    assert thread(state, "coder") == [("user", "count it"), ("assistant", "I look"), ("tool", "a = 1")]
    assert thread(state, "critic") == [("user", "is it right?")]
    assert thread(state, "proxy") == [("user", "what is it?"), ("assistant", "I ask")]
    answered = state_of(
        says("proxy", "I ask", "p1.1"),
        ASKED,
        says("coder", "3"),
        told("1.1", "3"),
        PersonSpoke(text="and b?"),
    )
    assert member_thread(answered, "proxy")[-2:] == (
        Message(role="tool", text="3", call="p1.1"),
        Message(role="user", text="and b?"),
    )
    nobody_asks = [("user", "what is it?"), ("user", "and b?")]
    assert thread(answered, "coder") == nobody_asks


def test_an_earlier_talk_of_the_same_two_is_remembered_and_a_later_message_waits() -> None:
    second, third = send("3.1", "proxy", "coder", "once more"), send("3.2", "proxy", "coder", "and then")
    other = send("3.3", "critic", "coder", "from me")
    state = state_of(ASKED, says("coder", "3"), told("1.1", "3"), other, second, third)
    assert message_in_work(state, "coder") == other
    assert thread(state, "coder") == [("user", "from me")]
    later = state_of(ASKED, says("coder", "3"), told("1.1", "3"), second, third, other)
    assert thread(later, "coder") == [("user", "count it"), ("assistant", "3"), ("user", "once more")]


def briefed(member: RoleSpec, *events: Event) -> tuple[Message, ...]:
    return assistant_briefing(member, state_of(*events), {}, "PART")


def test_the_proxy_is_told_that_there_is_a_project_and_the_others_what_it_is() -> None:
    (system, goal) = briefed(PROXY, PROJECT, DATA)
    assert system.text == (
        "PART\n\nThe person's folder holds a project, which the assistants can search, read, change and run."
        "\n\n# Data file d.csv\n3 rows"
    )
    assert goal == Message(role="user", text="what is it?")
    other = briefed(replace(CODER, instructions="Be brief."), PROJECT, ASKED)[0].text
    assert other.startswith("PART\n\nBe brief.\n\n")
    assert "which the assistants can search" not in other
    assert "ask for what else is needed" not in other
    assert briefed(PROXY)[0].text == "PART"


def test_a_member_is_told_why_its_last_reply_could_not_be_used() -> None:
    refused = ReplyRefused(role="proxy", reason="the answer is empty")
    assert briefed(PROXY, refused)[-1] == Message(
        role="user", text="Your last reply could not be used: the answer is empty"
    )
    assert len(briefed(PROXY)) == 2


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ([], False),
        ([PersonSpoke(text="Write a clock.")], True),
        ([PersonSpoke(text="Write a clock."), PersonSpoke(text="What is it?")], False),
    ],
)
def test_the_persons_last_words_say_whether_work_is_wanted(events: list[Event], wanted: bool) -> None:
    assert wants_work(state_of(*events)) is wanted
    assert wants_work(chat([replace(STARTED, goal="Write a clock.")]))


WITH_DATA = replace(STARTED, data=("d.csv",))


def given(
    text: str, *events: Event, references: References | None = None, started: ChatStarted = STARTED
) -> tuple[str, str]:
    """The ground and words of an answer, or nothing and why it is refused."""
    said = answer(state_of(*events, started=started), "proxy", text, references or References())
    return ("", said.reason) if isinstance(said, Refusal) else (said.ground, said.text)


HEARD = (ASKED, told("1.1", "It is blue."))


def test_an_answer_rests_on_what_was_heard_or_is_said_to_be_certain() -> None:
    assert given(" \n", *HEARD) == ("", "the answer is empty")
    assert given("Blue.") == (
        "",
        "nobody has been asked yet: use SendMessage, or begin with CERTAIN: if you are",
    )
    assert given("CERTAIN: blue.") == ("certain", "blue.")
    assert given("CERTAIN: blue.", *HEARD) == ("complete", "blue.")
    assert given("Blue.", *HEARD) == ("complete", "Blue.")
    assert given("Blue.", ASKED, told("1.1", "no", failed=True)) == ("error", "Blue.")
    assert given("Blue.", *HEARD, PersonSpoke(text="and b?"))[0] == "", (
        "what was heard was for another question"
    )
    by_others = (send("1.1", "coder", "critic", "x"), told("1.1", "y"))
    assert given("Blue.", *by_others)[0] == ""


PRINTED = RunFinished(
    id="r",
    purpose="script",
    about="n.py",
    command="c",
    tree="",
    result=RunResult(exit_code=0, stdout="\n42\n"),
)


def test_a_number_of_data_must_have_been_printed_and_one_of_code_need_not() -> None:
    heard = (*HEARD, PRINTED)
    assert given("It is 42.", *heard, started=WITH_DATA) == ("complete", "It is 42.")
    refused = ("", "no program printed 43: use only numbers that stand in an output")
    assert given("It is 43.", *heard, started=WITH_DATA) == refused
    assert given("It is 43.", *heard, PROJECT, started=WITH_DATA) == refused
    assert given("It is 43.", *heard)[0] == "complete"
    asked = replace(WITH_DATA, goal="Is it 43?")
    assert given("It is 43.", *heard, started=asked)[0] == "complete", "the person said the number"
    assert given("It is 43.", PersonSpoke(text="43?"), *heard, started=WITH_DATA)[0] == "complete"

    def sources(*events: Event, started: ChatStarted = STARTED) -> tuple[Source, ...]:
        said = answer(state_of(*heard, *events, started=started), "proxy", "It is 42.")
        assert isinstance(said, AnswerGiven)
        return said.sources

    found = (Source(number="42", script="n.py", line=2, text="42"),)
    assert sources(started=WITH_DATA) == sources() == found
    assert sources(PROJECT) == ()
    assert sources(PROJECT, started=WITH_DATA) == found


def test_a_line_that_is_not_there_is_named_once_and_then_marked() -> None:
    lost = References(unverified=("a.py:9 (it has 3 lines)",))
    ground, why = given("See a.py:9.", *HEARD, references=lost)
    assert (ground, why) == (
        "",
        f"{NO_SUCH_LINE}a.py:9 (it has 3 lines). Look again, and name only lines that you know",
    )
    again = ReplyRefused(role="proxy", reason=why)
    assert given("See a.py:9.", *HEARD, again, references=lost)[0] == "complete"
    other = ReplyRefused(role="proxy", reason="the answer is empty")
    assert given("See a.py:9.", *HEARD, other, references=lost)[0] == ""


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "surveyed", "references"),
    [
        ("See a.py:2.", PROJECT, References(found=(Reference(path="a.py", line=2, text="y = 2"),))),
        ("See a.py:3.", PROJECT, References(unverified=("a.py:3 (a.py has no such line)",))),
        ("See a.py.", PROJECT, References()),
        ("See a.py:2.", BaseSurveyed(kind="empty", root="/w"), References()),
    ],
)
async def test_lines_that_an_answer_cites_are_looked_up_in_the_project(
    tmp_path: Path, text: str, surveyed: BaseSurveyed, references: References
) -> None:
    (tmp_path / "a.py").write_text("x = 1\n  y = 2\n")
    run_context = RunContext(Workspace(tmp_path), UnsafeLocal(), MemoryBlobs(), MemoryBus())
    assert await references_in(text, state_of(surveyed), run_context) == references


def test_an_answer_is_shown_with_where_its_numbers_and_lines_come_from() -> None:
    shown = AnswerGiven(
        by="proxy",
        text="42",
        ground="complete",
        sources=(Source(number="42", script="n.py", line=2, text="n=42"),),
        references=(Reference(path="a.py", line=3, text="x = 1"),),
        unverified=("b.py:1",),
    )
    lines = ["42", "", "42 ← n.py, output line 2: n=42", "a.py:3 ← x = 1", "not verified: b.py:1"]
    assert answer_words(shown) == "\n".join(lines)
    assert answer_text(state_of(shown)) == answer_words(shown)
    assert answer_text(state_of()) == ""
    assert answer_words(AnswerGiven(by="proxy", text="42", ground="certain")) == "42"


def test_each_role_has_its_prompt_and_data_their_rule() -> None:
    def part(member: RoleSpec, started: ChatStarted = STARTED) -> str:
        return part_of(member, state_of(started=started))

    texts = {name: prompt_text("septet.ways.assistant", name) for name in ("proxy", "coder", "data")}
    assert part(PROXY) == texts["proxy"]
    assert part(CODER, WITH_DATA) == texts["coder"] + texts["data"]
    assert part(RoleSpec(name="x", role="critic")) == ""


def test_a_result_with_changes_is_a_version_unless_it_is_written_or_a_later_call_came() -> None:
    changed = FileChange(path="a.py", kind="new", sha256="1", size=1)
    write = tool("1.1", "coder", "File", file_name="a.py")
    done = replace(told("1.1", "ok"), changes=(changed,))
    due = version_due(state_of(write, done), write)
    assert isinstance(due, VersionWritten)
    assert (due.number, due.note, [file.path for file in due.files]) == (1, "File by coder", ["a.py"])
    assert version_due(state_of(write), write) is None
    assert version_due(state_of(write, told("1.1", "ok")), write) is None
    assert version_due(state_of(write, done, due), write) is None
    assert version_due(state_of(write, done, tool("1.2", "coder", "read")), write) is None


def test_a_reply_is_delivered_once() -> None:
    assert not answered_already(state_of())
    call = tool("1.1", "proxy", "read", path="a")
    assert not answered_already(state_of(call, told("1.1", "x")))
    assert answered_already(
        chat([STARTED, TurnOpened(speaker="proxy"), ASKED, TurnOpened(speaker="coder"), told("1.1", "3")])
    )
