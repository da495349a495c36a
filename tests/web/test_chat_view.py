"""What the page is told of a chat: question, rounds, plan, budgets and end, computed where the team's own fold is."""

import pytest
from msgspec.structs import replace
from team.states import PLAN, STARTED, chat, planned, ran, reviewed, said, version

from septet.domain.events import (
    ChatContinued,
    ChatEnded,
    Event,
    PackagesDecided,
    PersonSpoke,
    PlanProposed,
    ReplyRefused,
    RunFinished,
    TurnOpened,
)
from septet.domain.plans import plan_digest, plan_text
from septet.domain.pytest_report import TestCase, TestReport
from septet.domain.runs import Purpose, RunResult
from septet.domain.teams import Allowance, Budget, RoleSpec
from septet.ways.table import TEAMS
from septet.web.chat_view import ChatView, chat_view, event_text_for_page


def view(*events: Event) -> ChatView:
    return chat_view(chat(events))


def test_a_plan_is_asked_about_while_it_is_the_persons_turn() -> None:
    proposed = planned()[:-1]
    asked = view(*proposed)
    assert (asked.phase, asked.label) == ("waiting", "waits for you")
    assert asked.question is not None
    assert (asked.question.kind, asked.question.text) == ("plan", plan_text(PLAN))
    assert asked.plan is not None
    assert (asked.plan.digest, asked.plan.approved) == (plan_digest(PLAN), False)
    assert view(*proposed[:-1]).question is None
    assert view(*proposed, PersonSpoke(text="shorter")).question is None
    assert view(*planned()).question is None


def test_a_model_that_stands_for_the_person_is_not_waited_for() -> None:
    team = TEAMS["assistant"]
    shown = view(replace(STARTED, team=team), *version(1, "a"), TurnOpened(speaker="proxy"))
    assert (shown.question, shown.phase, shown.label, shown.person) == (None, "going", "proxy", "")
    assert [one.title for one in shown.members] == ["proxy", "assistant"]


def test_requirements_say_whether_the_newest_version_meets_them() -> None:
    work = [*planned(), *version(1, "a"), *ran(1, "a", green=False)]
    plan = view(*work, PersonSpoke(text="make it blue")).plan
    assert plan is not None
    assert [(one.id, one.check, one.met) for one in plan.requirements] == [
        ("P1", "tests test_add.py::test_sum", False),
        ("P2", "command python add.py 2 3 => 5", True),
    ]
    assert [(one.id, one.met, one.evidence) for one in plan.wishes] == [("W1", False, "no version since")]
    newer = view(*work, *reviewed(1, accept=False), *version(2, "b")).plan
    assert newer is not None
    assert [(one.met, one.evidence) for one in newer.requirements] == [(None, ""), (None, "")]
    assert [one.earlier for one in newer.requirements] == [False, True]
    assert [one.earlier for one in plan.requirements] == [None, None]


def test_rounds_are_counted_as_the_team_does() -> None:
    refused = [TurnOpened(speaker="coder"), said("coder", "?"), ReplyRefused(role="coder", reason="no code")]
    shown = view(*planned(), *refused, *version(1, "a"))
    assert (shown.rounds, shown.round_limit) == (1, STARTED.team.budget.rounds)


@pytest.mark.parametrize(
    ("claimed", "label", "text", "good"),
    [
        (
            ChatEnded(reason="done", detail="every check passed"),
            "done",
            "Done; only the coder's own tests show P1",
            True,
        ),
        (ChatEnded(reason="bound", detail="8 rounds are used up"), "bound", "(8 rounds are used up)", False),
    ],
)
def test_an_end_is_what_the_log_bears_out(claimed: ChatEnded, label: str, text: str, good: bool) -> None:
    proven = [*planned(), *version(1, "a"), *ran(1, "a", green=True), *reviewed(1, accept=True)]
    shown = view(*proven, claimed)
    assert shown.ending is not None
    assert (shown.label, shown.ending.good) == (label, good)
    assert text in shown.ending.text
    assert view(*proven, claimed, ChatContinued(budget=Budget())).ending is None


def test_an_end_without_evidence_is_a_claim() -> None:
    shown = view(*planned(), ChatEnded(reason="done", by="coder"))
    assert shown.ending is not None
    assert (shown.phase, shown.label, shown.ending.good) == ("claimed", "not proven", False)
    assert shown.ending.text.startswith("Claimed by coder, not proven")


def test_budgets_are_those_that_somebody_set() -> None:
    coder = RoleSpec(name="coder", role="coder", title="Ada", budget=Allowance(cost=0.5))
    team = replace(TEAMS["pair"], members=(coder,), budget=Budget(tokens=100))
    shown = view(replace(STARTED, team=team))
    assert [(one.owner, one.unit, one.limit) for one in shown.budgets] == [
        ("the chat", "tokens", 100),
        ("Ada", "dollars", 0.5),
    ]


def finished(purpose: Purpose, result: RunResult) -> RunFinished:
    return RunFinished(id="1", purpose=purpose, command="x", tree="", result=result)


GOOD, BAD = RunResult(exit_code=0), RunResult(exit_code=1)
ONE_PASSED = TestReport(cases=(TestCase(id="a", outcome="passed"),))
HOOKED = replace(ONE_PASSED, hooks=("conftest.py",))


@pytest.mark.parametrize(
    ("run", "text", "good"),
    [
        (finished("run", GOOD), "exit 0", True),
        (finished("run", BAD), "exit 1", False),
        (finished("run", replace(GOOD, stopped_by="time")), "stopped by the time limit", False),
        (finished("tests", replace(GOOD, tests=ONE_PASSED)), "1 passed", True),
        (finished("tests", replace(GOOD, tests=HOOKED)), "1 passed", False),
        (finished("tests alone", BAD), "they fail, as they should", True),
        (finished("tests alone", GOOD), "they pass: they prove nothing", False),
    ],
)
def test_how_a_run_ended_in_words(run: RunFinished, text: str, good: bool) -> None:
    found = event_text_for_page(run)
    assert found is not None
    assert found.outcome is not None
    assert (found.outcome.text, found.outcome.good) == (text, good)


def test_words_for_plans_packages_and_earlier_ends() -> None:
    plan = event_text_for_page(PlanProposed(plan=PLAN))
    assert plan is not None
    assert plan.checks == ("tests test_add.py::test_sum", "command python add.py 2 3 => 5")
    packages = event_text_for_page(PackagesDecided(names=("numpy",), allowed=True, always=True))
    assert packages is not None
    assert packages.text == "Install numpy, and whatever else this chat will want"
    ended = event_text_for_page(ChatEnded(reason="no_progress"))
    assert ended is not None
    assert ended.text == "Ended: no progress"
    assert event_text_for_page(TurnOpened(speaker="coder")) is None
