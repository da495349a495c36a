"""The group chat's graph: legal candidates only, and never a chat without an end or a speaker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from team.states import STARTED, chat, said, version

from septet.domain.events import (
    ChatStarted,
    Event,
    PersonSpoke,
    ReplyRefused,
    RunFinished,
    SpeakerChosen,
    Terminated,
    TurnOpened,
)
from septet.domain.plans import Refusal
from septet.domain.runs import RunResult
from septet.domain.teams import Budget, Edge, RoleSpec, TeamSpec
from septet.team.floor import End, Speak
from septet.team.graph import START, candidates, edges_of, is_graph, speaker_choices
from septet.ways.pair.briefing import LONGEST_TALK, conversation_lines, omitted_summary
from septet.ways.pair.policy import PAIR, NextSpeaker, parse_manager
from septet.ways.table import TEAMS, floor_for

TEAM = TEAMS["pair"]
FLOOR = floor_for(TEAM, TEAM.budget)


def ran(code: int) -> RunFinished:
    result = RunResult(exit_code=code, stderr="KeyError: 'id'" if code else "")
    return RunFinished(id="r", purpose="run", command="python main.py", tree="", result=result)


CODED = [STARTED, *version(1, "a")]
FAILED = [*CODED, TurnOpened(speaker="runner"), ran(1)]
WENT_WELL = [*CODED, TurnOpened(speaker="runner"), ran(0)]


@pytest.mark.parametrize(
    ("events", "speaker"),
    [
        ([STARTED], "manager"),
        ([STARTED, TurnOpened(speaker="manager")], "coder"),
        ([STARTED, TurnOpened(speaker="coder"), said("coder", "a plan")], "coder"),
        (CODED, "runner"),
        (FAILED, "coder"),
        (WENT_WELL, "manager"),
        ([*WENT_WELL, TurnOpened(speaker="manager"), SpeakerChosen(speaker="coder")], "coder"),
    ],
)
def test_who_follows_whom(events: list[Event], speaker: str) -> None:
    assert FLOOR(chat(events)) == Speak(speaker=speaker)


def test_only_the_managers_terminate_ends_the_chat() -> None:
    ended = [*WENT_WELL, TurnOpened(speaker="manager"), Terminated(summary="it works")]
    assert FLOOR(chat(ended)) == End(reason="claimed", detail="it works")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Well done.\nnext: coder", NextSpeaker(speaker="coder")),
        ("**Next:** Coder", NextSpeaker(speaker="coder")),
        ("next: coder\nterminate: it works", Terminated(summary="it works")),
        ("terminate: no\nnext: coder", NextSpeaker(speaker="coder")),
    ],
)
def test_the_manager_is_understood(text: str, read: NextSpeaker | Terminated) -> None:
    assert parse_manager(text, ["coder"]) == read


@pytest.mark.parametrize("text", ["", "go on", "next: runner", "next: nobody", "TERMINATE"])
def test_what_names_nobody_who_may_speak_is_refused(text: str) -> None:
    assert isinstance(parse_manager(text, ["coder"]), Refusal)


def test_who_may_speak_is_told_in_words() -> None:
    assert parse_manager("next: nobody", ["coder"]) == Refusal(
        reason="'nobody' may not speak now, only coder"
    )
    told = parse_manager("next: nobody", ["coder", "manager"])
    assert told == Refusal(reason="'nobody' may not speak now, only coder or manager")


def test_a_long_talk_is_shortened_but_keeps_plan_done_steps_and_the_newest() -> None:
    events: list[Event] = [STARTED, TurnOpened(speaker="coder"), said("coder", "1. read\n2. write")]
    for number in range(1, 40):
        events += [*version(number, f"{number}"), TurnOpened(speaker="runner"), ran(number % 2)]
        code = f"```python main.py\ndef step_{number}(path: str) -> int:\n    return {number}\n```"
        events.append(said("coder", f"message {number} " + "x" * 2_000 + f"\n{code}"))
    parts = conversation_lines(chat(events))
    whole = "\n".join(parts)
    assert len(whole) < LONGEST_TALK + 4_000
    assert "1. read" in parts[0]
    assert "message 39" in parts[-1]
    assert (
        "messages left out; what ran well in them:\n- python main.py\nwhat the code in them defines:" in whole
    )
    assert "- def step_1(path: str) -> int" in whole


def test_of_what_is_left_out_only_the_coders_code_defines_something() -> None:
    block = "```python main.py\ndef {}() -> int:\n    return 1\n```"
    left = [said("manager", block.format("wanted")), said("coder", block.format("written")), ran(1), ran(0)]
    told = omitted_summary([*left])
    assert told.splitlines() == [
        "… 4 messages left out; what ran well in them:",
        "- python main.py",
        "what the code in them defines:",
        "- def written() -> int",
    ]


@pytest.mark.parametrize(("more", "messages"), [(0, 3), (1, 2)])
def test_a_talk_is_whole_up_to_the_longest_and_then_loses_what_came_after_the_plan(
    more: int, messages: int
) -> None:
    events: list[Event] = [STARTED, TurnOpened(speaker="coder"), said("coder", "1. read")]
    shown = sum(map(len, conversation_lines(chat([*events, said("coder", ""), said("coder", "end")]))))
    events += [said("coder", "x" * (LONGEST_TALK - shown + more)), said("coder", "end")]
    parts = conversation_lines(chat(events))
    assert sum("x" in part and "left out" not in part for part in parts) == messages - 2
    assert parts[-1].endswith("end")
    assert parts[0].endswith("1. read")


def test_a_plan_that_is_too_long_is_shown_once() -> None:
    events: list[Event] = [STARTED, TurnOpened(speaker="coder"), said("coder", "x" * (LONGEST_TALK + 1))]
    assert len(conversation_lines(chat(events))) == 1


@given(
    st.lists(
        st.sampled_from(
            [
                [TurnOpened(speaker="manager")],
                [TurnOpened(speaker="coder"), said("coder", "hm")],
                version(1, "a"),
                version(2, "b"),
                [TurnOpened(speaker="runner"), ran(0)],
                [TurnOpened(speaker="runner"), ran(1)],
                [TurnOpened(speaker="exemplar")],
                [SpeakerChosen(speaker="runner")],
                [ReplyRefused(role="manager", reason="no")],
                [PersonSpoke(text="hm")],
                [Terminated(summary="x")],
            ]
        ),
        max_size=30,
    )
)
def test_every_state_has_a_legal_speaker_or_an_end(parts: list[list[Event]]) -> None:
    state = chat([replace(STARTED, team=TEAM), *(event for part in parts for event in part)])
    move = floor_for(TEAM, Budget(rounds=20))(state)
    again = state.floor.turn.speaker if state.floor.turn and state.talk.refused_reply else ""
    legal = {*candidates(PAIR, state), "manager", "exemplar", again}
    assert isinstance(move, End) or move.speaker in legal


def group(*members: RoleSpec, rounds: int = 20) -> TeamSpec:
    return TeamSpec(name="group", members=members, floor="group_chat", budget=Budget(rounds=rounds))


def edges(*names: str) -> tuple[Edge, ...]:
    return tuple(Edge(to=name) for name in names)


BOSS = RoleSpec(name="Boss", role="manager")
ANN = RoleSpec(name="Ann", role="writer", next=edges("Bob", "Carl"))
BOB = RoleSpec(name="Bob", role="editor", next=edges("Ann"))
CARL = RoleSpec(name="Carl", role="editor")
PERSON = RoleSpec(name="proxy", role="proxy")
CLUB = group(ANN, BOB, CARL, BOSS, PERSON)


def spoke(*names: str) -> list[Event]:
    return [event for name in names for event in (TurnOpened(speaker=name), said(name, "hm"))]


@pytest.mark.parametrize(
    ("events", "speaker"),
    [
        ([], "Ann"),
        (spoke("Ann"), "Boss"),
        ([*spoke("Ann", "Boss"), SpeakerChosen(speaker="Carl")], "Carl"),
        ([*spoke("Ann", "Boss"), SpeakerChosen(speaker="Ann")], "Bob"),
        (spoke("Ann", "Boss", "Bob"), "Ann"),
        (spoke("Ann", "Boss", "Carl"), "Boss"),
        ([*spoke("Ann", "Boss", "Carl", "Boss"), SpeakerChosen(speaker="Ann")], "Ann"),
        ([*spoke("Ann", "Boss"), ReplyRefused(role="Boss", reason="no")], "Boss"),
    ],
)
def test_in_a_team_of_ones_own_only_who_may_follow_does(events: list[Event], speaker: str) -> None:
    assert floor_for(CLUB, CLUB.budget)(chat([started(CLUB), *events])) == Speak(speaker=speaker)


def test_a_manager_chooses_among_those_who_may_follow_and_else_among_all() -> None:
    paths = edges_of(CLUB)
    assert speaker_choices(paths, "Boss", chat([started(CLUB), *spoke("Ann", "Boss")])) == ["Bob", "Carl"]
    refused = [*spoke("Ann", "Boss"), ReplyRefused(role="Boss", reason="no"), TurnOpened(speaker="Boss")]
    assert speaker_choices(paths, "Boss", chat([started(CLUB), *refused])) == ["Bob", "Carl"]
    assert speaker_choices(paths, "Boss", chat([started(CLUB), *spoke("Carl", "Boss")])) == [
        "Ann",
        "Bob",
        "Carl",
    ]


@pytest.mark.parametrize(
    ("events", "speaker"),
    [
        (version(1, "a"), "runner"),
        ([*version(1, "a"), TurnOpened(speaker="runner"), ran(1)], "exemplar"),
        ([*version(1, "a"), TurnOpened(speaker="runner"), ran(0)], "Ann"),
        (spoke("coder"), "Ann"),
    ],
)
def test_guards_of_ones_own_look_at_what_was_run(events: list[Event], speaker: str) -> None:
    coder = RoleSpec(
        name="coder",
        role="coder",
        next=(Edge(to="runner", when="unrun"), Edge(to="Ann", when="nothing to run")),
    )
    runner = RoleSpec(
        name="runner",
        role="runner",
        next=(Edge(to="exemplar", when="failed"), Edge(to="Ann", when="succeeded")),
    )
    exemplar = RoleSpec(name="exemplar", role="exemplar", next=edges("coder"))
    writer = RoleSpec(name="Ann", role="writer")
    team = group(coder, runner, exemplar, writer)
    assert floor_for(team, team.budget)(chat([started(team), *events])) == Speak(speaker=speaker)


def test_a_talk_without_a_manager_takes_the_first_who_may_and_ends_after_its_rounds() -> None:
    team = group(ANN, BOB, replace(CARL, next=edges("Ann")), rounds=3)
    floor = floor_for(team, team.budget)
    assert floor(chat([started(team), *spoke("Ann")])) == Speak(speaker="Bob")
    ended = floor(chat([started(team), *spoke("Ann", "Bob", "Ann")]))
    assert ended == End(reason="rounds", detail="all 3 rounds were spoken")


def test_a_manager_that_never_ends_is_ended_by_the_rounds() -> None:
    team = replace(CLUB, budget=Budget(rounds=2))
    ended = floor_for(team, team.budget)(chat([started(team), *spoke("Ann", "Boss")]))
    assert ended == End(reason="bound", detail="2 rounds are used up")


def test_a_manager_is_understood_by_any_name_that_a_member_has() -> None:
    assert parse_manager("on it goes\n**Next:** ann lee.", ["Ann Lee", "Bob"]) == NextSpeaker(
        speaker="Ann Lee"
    )
    refused = parse_manager("next: Carl", ["Ann Lee", "Bob"])
    assert refused == Refusal(reason="'Carl' may not speak now, only Ann Lee or Bob")


def started(team: TeamSpec) -> ChatStarted:
    return ChatStarted(goal="a poem", team=team, workspace="")


@pytest.mark.parametrize(
    ("members", "is_one"),
    [
        ((RoleSpec(name="a", role="writer"), RoleSpec(name="b", role="editor")), False),
        ((RoleSpec(name="a", role="writer"), RoleSpec(name="boss", role="manager")), True),
        ((RoleSpec(name="a", role="writer", next=(Edge(to="b"),)), RoleSpec(name="b", role="editor")), True),
        ((RoleSpec(name="b", role="editor"), RoleSpec(name="a", role="writer", next=(Edge(to="b"),))), True),
    ],
)
def test_a_team_is_a_graph_by_a_manager_or_by_who_may_follow(
    members: tuple[RoleSpec, ...], is_one: bool
) -> None:
    assert is_graph(TeamSpec(name="t", members=members)) is is_one


def test_who_may_follow_whom_is_said_by_the_team_or_led_by_its_manager_or_goes_round() -> None:
    def follow(*members: RoleSpec) -> dict[str, list[str]]:
        found = edges_of(TeamSpec(name="t", members=members))
        return {name: [edge.to for edge in edges] for name, edges in found.items() if name != START}

    a, b, c = (RoleSpec(name=name, role="writer") for name in "abc")
    assert follow(a, b, c) == {"a": ["b"], "b": ["c"], "c": ["a"]}
    assert follow(a, replace(b, next=(Edge(to="a"),)), c) == {"a": ["b"], "b": ["a"], "c": ["a"]}
    manager, person = RoleSpec(name="m", role="manager"), RoleSpec(name="p", role="proxy")
    assert follow(person, a, manager, b) == {"a": ["m"], "m": ["a", "b"], "b": ["m"]}
