"""Where a chat stands, in words that a person who was away understands."""

from team.states import PLAN, STARTED, chat, planned, said, version

from septet.chat.results import status
from septet.domain.events import ChatEnded, PlanProposed, TurnOpened


def test_a_chat_that_waits_says_for_what() -> None:
    proposed = [STARTED, TurnOpened(speaker="planner"), said("planner", "a plan"), PlanProposed(plan=PLAN)]
    assert status(chat(proposed)) == "unfinished, it was the planner's turn"
    assert (
        status(chat([*proposed, TurnOpened(speaker="proxy")])) == "waits for the person to approve the plan"
    )
    assert (
        status(chat([*planned(), *version(1, "a"), TurnOpened(speaker="proxy")]))
        == "waits for the person to look at it"
    )


def test_an_end_is_said_once() -> None:
    stopped = ChatEnded(reason="stopped", detail="stopped by the person")
    assert status(chat([*planned(), stopped])) == "stopped by the person"
    bound = ChatEnded(reason="bound", detail="8 rounds are used up")
    assert (
        status(chat([*planned(), bound])) == "stopped unfinished, a bound was reached (8 rounds are used up)"
    )
