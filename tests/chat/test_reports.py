"""Where a chat stands, in words that a person who was away understands."""

from team.states import PLAN, STARTED, chat, planned, said, version

from septet.chat.reports import status
from septet.domain.events import PlanProposed, TurnOpened


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
