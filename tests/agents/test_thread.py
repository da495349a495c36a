"""A member's thread: only added to, and shortened where that pays."""

import pytest
from team.states import chat, planned

from septet.agents.tool_context import files_read
from septet.agents.tool_loop import ANSWERS_BETWEEN, SHORTENED, member_messages, should_shorten
from septet.domain.events import Event, MemberBriefed, ModelAnswered, ToolAnswered, ToolCalled, TurnOpened
from septet.domain.files import FileRef
from septet.domain.messages import Answer, ToolCall, Usage

GOAL = MemberBriefed(member="coder", text="# Goal\n" + "x" * 1000, system="You are the coder.")
MARK = MemberBriefed(member="coder", text=SHORTENED, shortens=True)


def steps(count: int, size: int, cached: float = 0.0) -> list[Event]:
    """Answers with a call each, and what the tool said."""
    found: list[Event] = []
    for number in range(1, count + 1):
        call = ToolCall(id=f"c{number}", name="read", arguments="{}")
        usage = Usage(prompt=1000, cached=round(1000 * cached), completion=1)
        found += [
            ModelAnswered(role="coder", answer=Answer(text=f"step {number}", calls=(call,), usage=usage)),
            ToolCalled(id=f"1.{number}.1", by="coder", name="read", arguments="{}", call=call.id),
            ToolAnswered(
                id=f"1.{number}.1",
                text="y" * size,
                summary=f"read {number}.py",
                shown=(FileRef(path=f"{number}.py", sha256="0" * 64, size=1),),
            ),
        ]
    return found


def thread(*events: Event) -> list[Event]:
    return [*planned(), TurnOpened(speaker="coder"), GOAL, *events]


@pytest.mark.parametrize(
    ("count", "size", "cached", "due"),
    [
        (ANSWERS_BETWEEN - 1, 9_000, 0.0, False),
        (ANSWERS_BETWEEN, 9_000, 0.0, True),
        (ANSWERS_BETWEEN, 1_000, 0.0, False),
        (ANSWERS_BETWEEN, 9_000, 0.9, True),
    ],
)
def test_a_thread_is_shortened_where_it_pays(count: int, size: int, cached: float, due: bool) -> None:
    assert should_shorten(chat(thread(*steps(count, size, cached))), "coder") is due


def test_what_is_served_from_a_cache_is_not_told_anew_for_a_little() -> None:
    words = MemberBriefed(member="coder", text="z" * 900_000)
    for cached, due in ((0.0, True), (0.95, False)):
        state = chat([*thread(words), *steps(ANSWERS_BETWEEN, 3_000, cached)])
        assert should_shorten(state, "coder") is due


def test_results_become_a_line_and_all_else_stays() -> None:
    before = thread(*steps(ANSWERS_BETWEEN, 9_000))
    whole = member_messages(chat(before), "coder")
    first = member_messages(chat([*before, MARK]), "coder")
    assert [message for message in first if message.role != "tool"][:-1] == [
        message for message in whole if message.role != "tool"
    ]
    assert first[-1].text == SHORTENED
    results = [message.text for message in first if message.role == "tool"]
    assert results[0].startswith("(read 1.py; the rest of 9000 characters")
    assert all(len(text) < 200 for text in results)
    later = member_messages(chat([*before, MARK, *steps(3, 9_000)]), "coder")
    assert later[: len(first)] == first
    assert not should_shorten(chat([*before, MARK, *steps(3, 9_000)]), "coder")


def test_a_short_result_stays_and_what_is_no_longer_told_is_not_known() -> None:
    before = thread(*steps(2, 300))
    assert [
        message.text for message in member_messages(chat([*before, MARK]), "coder") if message.role == "tool"
    ] == ["y" * 300] * 2
    assert files_read(chat(before), "coder").keys() == {"1.py", "2.py"}
    assert files_read(chat([*before, MARK]), "coder") == {}


def test_shortening_asks_nothing_of_the_member() -> None:
    state = chat([*thread(), *steps(1, 9), MARK])
    assert state.floor.turn is not None
    assert state.floor.turn.briefings == (0,)
