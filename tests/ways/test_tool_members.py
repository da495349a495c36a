"""What the coder is told of what the planner has read: the last of it whole, before that its name."""

from team.states import STARTED, chat

from septet.domain.events import Event, ToolAnswered, ToolCalled, TurnOpened
from septet.domain.state import State
from septet.ways.iterate.tool_members import MOST_FOUND, read_section


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
