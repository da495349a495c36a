"""How a chat ended is found in its log: nobody's word for it counts."""

import pytest
from team.states import STARTED, chat, planned, ran, reviewed, version

from septet.chat.lessons import from_chat
from septet.chat.reports import status
from septet.chat.results import result_of
from septet.domain.events import (
    ChatEnded,
    Event,
    PersonSpoke,
    Recorded,
    StopRequested,
    WorkAccepted,
)
from septet.stores.memory import MemoryBlobs
from septet.team.endings import ending
from septet.web.shelf import phase

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

    assert status(state) == "done, all checks passed"
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
