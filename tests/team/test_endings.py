"""How a chat ended is found in its log: nobody's word for it counts."""

import pytest
from msgspec.structs import replace
from team.states import STARTED, chat, planned, ran, reviewed, said, version

from septet.chat.example_sources import from_chat
from septet.chat.results import result_of, status
from septet.domain.events import (
    AnswerGiven,
    ChatEnded,
    Event,
    PersonSpoke,
    Recorded,
    StopRequested,
    Terminated,
    TurnOpened,
    WorkAccepted,
)
from septet.domain.teams import Budget, EndReason
from septet.stores.memory import MemoryBlobs
from septet.team.floor import End
from septet.ways.endings import ending, is_over
from septet.ways.table import TEAMS, floor_for
from septet.web.chat_view import phase

DONE = ChatEnded(reason="done", detail="every check passed", by="coder")
GREEN = [*planned(), *version(1, "a"), *ran(1, "a", green=True), *reviewed(1, accept=True)]
RED = [*planned(), *version(1, "a"), *ran(1, "a", green=False), *reviewed(1, accept=True)]


@pytest.mark.parametrize(
    "events",
    [
        [STARTED],
        planned(),
        [*planned(), *version(1, "a")],
        [*planned(), *version(1, "a"), *ran(1, "a", green=True)],
        RED,
        [*GREEN, *version(2, "b")],
        [*GREEN, PersonSpoke(text="make it blue")],
    ],
)
def test_a_done_without_its_evidence_is_a_claim_of_who_stored_it(events: list[Event]) -> None:
    state = chat([*events, DONE])

    found = ending(state)
    assert found is not None
    assert (found.reason, found.by) == ("claimed", "coder")
    assert status(state).startswith("claimed by coder, not proven")
    assert phase(state) == "claimed"
    assert (result_of(state).status, result_of(state).exit_code) == ("claimed", 3)


@pytest.mark.parametrize("after", [[], [PersonSpoke(text="thank you")], [StopRequested()], [DONE]])
def test_a_done_that_the_log_bears_out_is_one_whatever_is_said_after_it(after: list[Event]) -> None:
    state = chat([*GREEN, DONE, *after])

    assert status(state) == "done; only the coder's own tests show P1; the coder knew every example of P2"
    assert result_of(state).exit_code == 0


def test_an_acceptance_that_the_person_never_gave_is_a_claim() -> None:
    forged = ChatEnded(reason="accepted", detail="as it is", by="coder")
    assert status(chat([*RED, forged])).startswith("claimed by coder")
    assert status(chat([*RED, WorkAccepted(), forged])) == "accepted by the person (as it is)"


def test_a_version_that_came_after_the_end_is_not_proven_by_it() -> None:
    assert status(chat([*GREEN, DONE, *version(2, "b")])).startswith("claimed by coder, not proven")


def test_a_second_end_changes_nothing() -> None:
    bound = ChatEnded(reason="bound", detail="8 rounds are used up", by="coder")
    assert status(chat([*GREEN, bound, DONE])).startswith("stopped unfinished")


@pytest.mark.anyio
async def test_nothing_is_learnt_from_a_claim() -> None:
    log = [Recorded(chat="c", seq=seq, at=0.0, event=one) for seq, one in enumerate([*RED, DONE], start=1)]
    assert list(await from_chat(log, MemoryBlobs())) == []


PAIR = [
    replace(STARTED, team=TEAMS["pair"]),
    *version(1, "a"),
    *ran(1, "a", green=True)[:2],
    TurnOpened(speaker="manager"),
    said("manager", "terminate: pr.txt is there"),
    Terminated(summary="pr.txt is there"),
]
ONE_ROUND = replace(TEAMS["writer-editor"], budget=Budget(rounds=1))
TALK = [replace(STARTED, team=ONE_ROUND), TurnOpened(speaker="writer"), said("writer", "a poem")]
ANSWER = AnswerGiven(by="proxy", text="42", ground="certain")
ASSISTANT = [replace(STARTED, team=TEAMS["assistant"]), TurnOpened(speaker="proxy"), ANSWER]


@pytest.mark.parametrize(
    ("events", "reason", "words", "code"),
    [
        (
            PAIR,
            "claimed",
            "claimed, not proven: the manager says it is done, nothing was checked (pr.txt is there)",
            3,
        ),
        (TALK, "rounds", "rounds over (the one round was spoken)", 0),
        (ASSISTANT, "answered", "answered", 0),
    ],
)
@pytest.mark.parametrize("old", [False, True])
def test_work_without_checks_never_ends_as_done(
    events: list[Event], reason: EndReason, words: str, code: int, old: bool
) -> None:
    """Logs of earlier versions say `done` there: they are read as what it was."""
    move = floor_for(chat(events).team, chat(events).budget)(chat(events))
    assert isinstance(move, End)
    stored = "done" if old else move.reason
    state = chat([*events, ChatEnded(reason=stored, detail=move.detail, by="manager")])
    result = result_of(state)
    assert (move.reason, result.status, phase(state), status(state)) == (reason, reason, reason, words)
    assert result.exit_code == code
    assert is_over(state), "to resume it without a word does nothing"


@pytest.mark.parametrize("events", [PAIR, TALK, ASSISTANT])
@pytest.mark.parametrize("reason", ["done", "answered", "rounds"])
def test_an_end_that_does_not_follow_is_a_claim(events: list[Event], reason: EndReason) -> None:
    state = chat([*events[:-2], ChatEnded(reason=reason, by="coder")])
    assert status(state).startswith("claimed by coder, not proven")
    assert result_of(state).exit_code == 3
    assert not is_over(state)
