"""The group chat: round robin that is bounded, and speakers who know everything that was said."""

from hypothesis import given
from hypothesis.strategies import integers
from msgspec.structs import replace

from septet.domain.events import (
    ChatStarted,
    Event,
    ModelAnswered,
    PersonSpoke,
    Recorded,
    ReplyRefused,
    TurnOpened,
)
from septet.domain.messages import Answer
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.team.floor import End, Speak
from septet.ways.group_chat.policy import LONGEST_TALK, last_words, member_description, talk_briefing
from septet.ways.table import TEAMS, floor_for

TEAM = TEAMS["writer-editor"]


def state_of(*events: Event, team: TeamSpec = TEAM) -> State:
    log = [ChatStarted(goal="a poem", team=team, workspace="/w"), *events]
    return fold(Recorded(chat="c", seq=n, at=0.0, event=event) for n, event in enumerate(log, start=1))


def says(name: str, text: str) -> list[Event]:
    return [TurnOpened(speaker=name), ModelAnswered(role=name, answer=Answer(text=text))]


@given(integers(1, 5), integers(1, 30))
def test_the_turn_i_is_that_of_speaker_i_mod_n_and_exactly_k_are_opened(speakers: int, rounds: int) -> None:
    names = [f"m{number}" for number in range(speakers)]
    members = tuple(RoleSpec(name=name, role="writer") for name in names)
    team = TeamSpec(name="t", members=members, floor="group_chat", budget=Budget(rounds=rounds))
    floor, opened = floor_for(team, team.budget), list[Event]()
    while isinstance(move := floor(state_of(*opened, team=team)), Speak):
        opened.append(TurnOpened(speaker=move.speaker))

    assert opened == [TurnOpened(speaker=names[i % speakers]) for i in range(rounds)]
    said = f"all {rounds} rounds were spoken" if rounds > 1 else "the one round was spoken"
    assert move == End(reason="rounds", detail=said)


def test_turns_of_the_person_do_not_count() -> None:
    move = floor_for(TEAM, TEAM.budget)(state_of(TurnOpened(speaker="proxy"), *says("writer", "one")))
    assert move == Speak(speaker="editor")


def test_who_could_not_be_understood_speaks_again_and_knows_why() -> None:
    refused = ReplyRefused(role="writer", reason="you have no tools here")
    state = state_of(*says("writer", ""), refused)
    assert floor_for(TEAM, TEAM.budget)(state) == Speak(speaker="writer")
    writer, editor, _ = TEAM.members
    assert talk_briefing(writer, state)[-1].text.endswith(
        "Your last message could not be used: you have no tools here"
    )
    assert [one.text for one in talk_briefing(editor, state)[1:]] == ["user: a poem"]
    after = state_of(*says("writer", ""), refused, *says("writer", "one"))
    assert floor_for(TEAM, TEAM.budget)(after) == Speak(speaker="editor")


def test_a_speaker_knows_all_earlier_messages_and_which_were_its_own() -> None:
    state = state_of(*says("writer", "one"), PersonSpoke(text="shorter"), *says("editor", "two"))
    writer, editor, _ = TEAM.members

    assert [(one.role, one.text) for one in talk_briefing(writer, state)[1:]] == [
        ("user", "user: a poem"),
        ("assistant", "one"),
        ("user", "user: shorter\n\neditor: two"),
    ]
    assert [one.role for one in talk_briefing(editor, state)[1:]] == ["user", "assistant"]


def test_a_long_talk_keeps_the_task_and_the_newest_words() -> None:
    talk = [event for n in range(9) for event in says("writer", f"{n}" + "x" * (LONGEST_TALK // 4))]
    told = "\n".join(one.text for one in talk_briefing(TEAM.members[1], state_of(*talk)))

    assert "a poem" in told
    assert "8x" in told
    assert "4x" not in told


def test_as_many_characters_as_may_be_told_are_told_and_one_more_costs_the_oldest_message() -> None:
    for length, oldest in ((LONGEST_TALK - 3, "first"), (LONGEST_TALK - 2, "")):
        words = "y" * (length - len("first"))
        state = state_of(*says("writer", "first"), *says("editor", words), *says("writer", "end"))
        told = [one.text for one in talk_briefing(TEAM.members[1], state)[1:]]
        assert ("first" in told[0]) is bool(oldest)
        assert told[-1] == "writer: end"
        assert words in told


def test_the_newest_message_is_told_however_long_it_is() -> None:
    state = state_of(*says("writer", "first"), *says("writer", "z" * (LONGEST_TALK + 1)))
    (_, told) = talk_briefing(TEAM.members[1], state)
    assert told.text == f"user: a poem\n\nwriter: {'z' * (LONGEST_TALK + 1)}"


def test_a_talk_comes_to_the_last_words_of_its_first_speaker() -> None:
    assert last_words(state_of(*says("writer", "one"), *says("editor", "two"))) == "one"
    assert last_words(state_of()) == ""


def test_a_manager_knows_each_member_by_the_beginning_of_its_first_line() -> None:
    member = RoleSpec(name="ada", role="coder")
    assert member_description(member) == ""
    assert member_description(replace(member, instructions="\n Knows C.\nIs kind.\n")) == ": Knows C."
    assert member_description(replace(member, instructions="x" * 201)) == f": {'x' * 200}"
