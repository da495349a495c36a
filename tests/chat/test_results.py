"""Where a chat stands, in words that a person who was away understands."""

from team.states import PLAN, STARTED, chat, planned, ran, said, version

from septet.chat.results import ProofCost, result_of, run_outcome, status
from septet.domain.events import ChatEnded, PlanProposed, RunFinished, TurnOpened
from septet.domain.runs import RunResult


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


def test_the_result_tells_what_the_proof_took() -> None:
    assert result_of(chat(planned())).proof is None
    state = chat([*planned(), *version(1, "a"), *ran(1, "a", green=True)])
    assert result_of(state).proof == ProofCost(checks=3, check_seconds=0.0, controls=1, control_seconds=0.0)


def test_a_check_that_fails_without_the_change_is_as_it_should_be() -> None:
    result = RunResult(exit_code=1, stdout="\nno such name\n")
    run = RunFinished(id="r", purpose="check on base", about="P1", command="c", tree="t", result=result)
    outcome = run_outcome(run)
    assert (outcome.text, outcome.good) == ("without the change: exit 1, prints 'no such name'", True)
