"""A member asks the person in the middle of its turn, by the tool `ask`."""

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import pytest
from cli.commands import Septet
from msgspec.structs import replace
from scenarios.assistant.scripts import Turn, calls, says, write
from scenarios.autocoder.playing import home_in

from septet.agents.person import absent_person, agreeing_to_plans, always_agree, present
from septet.chat.results import status
from septet.domain.events import ChatEnded, Event, ModelAnswered, ToolAnswered, ToolCalled
from septet.domain.teams import TeamSpec
from septet.errors import NeedsPerson
from septet.ports import Agent
from septet.team.questions import NO_ANSWER, Question, question, read_answer
from septet.ways.table import TEAMS
from septet.wiring.session import open_session, with_model

pytestmark = pytest.mark.anyio
ASKED = "ask", {"question": "In which language: English or German?"}
PLAN = "1. greets\n   check: example hello.greet() => 'hallo'\n   check: tests test_hello.py"
FILES: list[tuple[str, dict[str, str]]] = [
    ("write", {"path": "hello.py", "text": "def greet():\n    return 'hallo'\n"}),
    (
        "write",
        {
            "path": "test_hello.py",
            "text": "from hello import greet\n\n\ndef test_greet():\n    assert greet() == 'hallo'\n",
        },
    ),
]


def script(folder: Path, expect: str, asks: int = 1, planner: Sequence[Turn] = ()) -> str:
    turns: Sequence[Turn] = [
        says("planner", PLAN),
        *planner,
        calls("coder", FILES[0], *[ASKED] * asks),
        calls("coder", FILES[1], expect=expect),
        says("coder", "German it is."),
        says("reviewer", "verdict: accept"),
    ]
    return write(folder / "script.yaml", *turns)


def team(model: str) -> TeamSpec:
    members = tuple(
        replace(one, form="tools") if one.role in ("planner", "coder", "reviewer") else one
        for one in TEAMS["iterate"].members
    )
    return with_model(replace(TEAMS["iterate"], members=members), model)


async def play(folder: Path, model: str, person: Agent, said: str = "", until: int = 0) -> list[Event]:
    """Start or resume; `said` is what the person says from outside before, `until` the last event before a kill."""
    async with open_session(home_in(folder)) as session:
        if not await session.log("c"):
            (folder / "work").mkdir()
            await session.start("greet me", team(model), folder / "work", "c")
        state = await session.state("c")
        for event in read_answer(state, question(state), said) if said else ():
            await session.append("c", event)
        try:
            performance = session.perform("c", await session.sandbox(), agreeing_to_plans(person))
            async with aclosing(performance):
                async for recorded in performance:
                    if until and recorded.seq > until:
                        break
        finally:
            (folder / "status").write_text(status(await session.state("c")))
        return [one.event for one in await session.log("c")]


def answers(events: list[Event]) -> list[str]:
    asked = {event.id for event in events if isinstance(event, ToolCalled) and event.name == "ask"}
    return [event.text for event in events if isinstance(event, ToolAnswered) and event.id in asked]


async def test_the_persons_words_are_what_the_tool_answers(tmp_path: Path) -> None:
    heard: list[Question] = []

    async def ask(asked: Question) -> str:
        heard.append(asked)
        return "German, please"

    events = await play(tmp_path, script(tmp_path, "German, please"), present(ask))
    assert [(one.kind, one.text) for one in heard] == [
        ("ask", "the coder asks: In which language: English or German?")
    ]
    assert answers(events) == ["German, please"]
    assert [event.reason for event in events if isinstance(event, ChatEnded)] == ["done"]


async def test_an_absent_person_answers_later_and_no_answer_of_the_model_is_bought_twice(
    tmp_path: Path,
) -> None:
    model = script(tmp_path, "German")
    with pytest.raises(NeedsPerson, match="In which language"):
        await play(tmp_path, model, absent_person("septet resume c"))
    assert (tmp_path / "status").read_text() == "waits for the person to answer a question"
    events = await play(tmp_path, model, absent_person("septet resume c"), "German")
    assert answers(events) == ["German"]
    assert [event.reason for event in events if isinstance(event, ChatEnded)] == ["done"]
    assert len([event for event in events if isinstance(event, ModelAnswered)]) == 5


async def test_where_nobody_wants_to_be_asked_the_planner_answers(tmp_path: Path) -> None:
    asked = says("planner", "German, as the example says", expect="# The coder asks\nIn which language")
    model = script(tmp_path, "German, as the example", planner=[asked])
    events = await play(tmp_path, model, always_agree)
    assert answers(events) == ["German, as the example says"]
    assert [event.reason for event in events if isinstance(event, ChatEnded)] == ["done"]


@pytest.mark.parametrize("said", [says("planner", "  "), calls("planner", ("list_files", {}))])
async def test_a_planner_without_an_answer_leaves_the_decision_to_who_asks(
    tmp_path: Path, said: Turn
) -> None:
    events = await play(tmp_path, script(tmp_path, NO_ANSWER, planner=[said]), always_agree)
    assert answers(events) == [NO_ANSWER]
    assert [event.reason for event in events if isinstance(event, ChatEnded)] == ["done"]


async def test_the_planner_gives_no_held_back_example_away(tmp_path: Path) -> None:
    told = says("planner", "look at hello.greet()")
    held = PLAN.replace("=> 'hallo'", "=> 'hallo'\n   check: held hello.greet() => 'hallo'")
    turns: list[Turn] = [
        says("planner", held),
        told,
        calls("coder", FILES[0], ASKED),
        calls("coder", FILES[1], expect=NO_ANSWER),
        says("coder", "German it is."),
        says("reviewer", "verdict: accept"),
    ]
    events = await play(tmp_path, write(tmp_path / "script.yaml", *turns), always_agree)
    assert answers(events) == [NO_ANSWER]


async def test_the_planners_answer_is_not_bought_twice(tmp_path: Path) -> None:
    model = script(tmp_path, "German", planner=[says("planner", "German")])
    whole = await play(tmp_path, model, always_agree)
    bought = [event.answer for event in whole if isinstance(event, ModelAnswered)]
    asked = [isinstance(event, ToolCalled) and event.name == "ask" for event in whole]
    first = asked.index(True)
    for stop in range(first, first + 4):
        other = tmp_path / str(stop)
        other.mkdir()
        await play(other, model, always_agree, until=stop)
        again = await play(other, model, always_agree)
        assert [event.answer for event in again if isinstance(event, ModelAnswered)] == bought
        assert answers(again) == ["German"]


async def test_a_member_asks_a_few_questions_and_no_more(tmp_path: Path) -> None:
    heard: list[Question] = []

    async def ask(asked: Question) -> str:
        heard.append(asked)
        return "German"

    events = await play(tmp_path, script(tmp_path, "decide by the goal", asks=7), present(ask))
    assert len(heard) == 5
    assert answers(events) == ["German"] * 5 + [NO_ANSWER] * 2


async def test_the_person_can_stop_instead_of_answering(tmp_path: Path) -> None:
    async def ask(asked: Question) -> str:
        return "stop"

    events = await play(tmp_path, script(tmp_path, "never asked"), present(ask))
    assert [event.reason for event in events if isinstance(event, ChatEnded)] == ["stopped"]
    assert answers(events) == []


def test_without_a_terminal_the_command_ends_and_says_how_to_answer(tmp_path: Path) -> None:
    septet = Septet(tmp_path / "home")
    model = script(tmp_path, "German")
    spec = tmp_path / "team.yaml"
    spec.write_text(TEAM)
    first = septet("run", "greet me", "-t", str(spec), "-m", model, "-n", "c", "-C", str(tmp_path / "work"))
    assert first.returncode == 4, first.stderr
    first = septet("resume", "c", "sounds good")
    assert first.returncode == 4, first.stderr
    assert "the coder asks: In which language: English or German?" in first.stderr
    assert "septet resume c 'YOUR ANSWER'" in first.stderr
    last = septet("resume", "c", "German")
    assert last.returncode == 0, last.stderr


TEAM = """name: tooled
members:
  - {name: proxy, role: proxy}
  - {name: planner, role: planner, form: tools}
  - {name: coder, role: coder, form: tools}
  - {name: runner, role: runner}
  - {name: reviewer, role: reviewer, form: tools}
"""


async def test_what_the_planner_was_answered_the_others_are_told(tmp_path: Path) -> None:
    async def ask(asked: Question) -> str:
        return "German, please"

    told = "# What was asked and answered\n- the planner asks: In which language: English or German? → German, please"
    model = write(
        tmp_path / "script.yaml",
        calls("planner", ASKED),
        says("planner", PLAN),
        calls("coder", *FILES, expect=told),
        says("coder", "German it is."),
        says("reviewer", "verdict: accept", expect=told),
    )
    events = await play(tmp_path, model, present(ask))
    assert [event.reason for event in events if isinstance(event, ChatEnded)] == ["done"]
