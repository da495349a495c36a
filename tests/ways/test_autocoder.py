"""The autocoder: what the reasoning step finds, and what a call of its coder must say."""

import pytest
from msgspec.structs import replace
from team.states import PLAN, STARTED, chat, planned, ran, reviewed, version

from septet.domain.events import DecisionRecorded, Event, PersonSpoke, PlanProposed, ToolCalled, TurnOpened
from septet.domain.plans import Refusal
from septet.domain.state import State
from septet.team.floor import Speak
from septet.ways.autocoder import members
from septet.ways.autocoder.choices import (
    UNDECIDED,
    ActionChoice,
    Decision,
    common_parameters,
    read_action,
    unfit,
)
from septet.ways.autocoder.policy import DISAGREEMENT, GREEN, diagnose, reason_and_act, verdict

SHOWN = [*planned(), *version(1, "a")]
RED, WELL = [*SHOWN, *ran(1, "a", green=False)], [*SHOWN, *ran(1, "a", green=True)]
SOURCES = {"add.py": "x = 1"}


def found(case: str) -> DecisionRecorded:
    return DecisionRecorded(by="runner", case=case, what="x", why="y")


@pytest.mark.parametrize(
    ("events", "speaker"),
    [
        ([STARTED], "planner"),
        ([STARTED, PlanProposed(plan=PLAN)], "proxy"),
        ([STARTED, PlanProposed(plan=PLAN), PersonSpoke(text="shorter")], "planner"),
        (planned(), "runner"),
        ([*planned(), found("empty")], "coder"),
        (WELL, "runner"),
        ([*WELL, found(GREEN)], "reviewer"),
        ([*WELL, found("unmet")], "coder"),
        ([*WELL, found(GREEN), *reviewed(1, accept=False)], "coder"),
    ],
)
def test_after_each_change_the_runner_reasons_and_the_rest_follows_from_what_it_finds(
    events: list[Event], speaker: str
) -> None:
    assert reason_and_act(chat(events)) == Speak(speaker=speaker)


def test_problems_are_found_in_the_order_in_which_they_must_be_solved() -> None:
    assert verdict(chat(RED), {}, {}) == ("empty", "the program is to be written", "there is no file yet")
    faults = {"b.py": "line 2", "a.py": "line 1"}
    assert verdict(chat(RED), SOURCES, faults) == ("broken", "a.py is wrong", "line 1")
    assert verdict(chat(RED), SOURCES, {}) == (
        DISAGREEMENT,
        "code and test disagree",
        "test_add.py::test_sum fails: the plan decides which is wrong",
    )
    missing = verdict(chat(WELL[:-1]), SOURCES, {})
    assert missing == ("unmet", "something is missing", "P2 is not met (not checked)")
    good = diagnose(chat(WELL), "runner", SOURCES, {})
    assert (good.by, good.case, good.what) == ("runner", GREEN, "nothing is to be changed")


def call(arguments: str, name: str = "create") -> ToolCalled:
    return ToolCalled(id="1.1", by="coder", name=name, arguments=arguments)


PLAIN = chat([*RED, found("unmet"), TurnOpened(speaker="coder")])
DISAGREEING = chat([*RED, found(DISAGREEMENT), TurnOpened(speaker="coder")])
DECIDED = '{"reasoning": " so ", "path": "a", "decision": {"wrong": "code", "item": "P1", "why": "w"}}'


def read(called: ToolCalled, state: State = PLAIN) -> ActionChoice | str:
    said = read_action(called, ["create", "delete"], state)
    return said.reason if isinstance(said, Refusal) else said


def test_a_call_names_an_action_and_its_reason() -> None:
    assert read(call('{"reasoning": " so ", "path": "a"}')) == ActionChoice(
        action="create", reasoning="so", arguments={"path": "a"}
    )
    assert read(call("{}", name="format")) == "there is no action 'format'; the actions are create, delete"
    missing = "`reasoning` is missing: say why this action"
    assert read(call('{"path": "a"}')) == missing
    assert read(call('{"reasoning": " "}')) == missing
    assert read(call('{"reasoning": 1}')) == missing
    assert isinstance(read(call("[")), str)


def test_where_code_and_test_disagree_a_call_must_say_which_is_wrong_by_which_item() -> None:
    assert read(call(DECIDED), DISAGREEING) == ActionChoice(
        action="create",
        reasoning="so",
        arguments={"path": "a"},
        decision=Decision(wrong="code", item="P1", why="w"),
    )
    assert read(call('{"reasoning": "so"}'), DISAGREEING) == UNDECIDED
    other = read(call(DECIDED.replace("P1", "P9")), DISAGREEING)
    assert other == "the decision names 'P9'; the plan has P1, P2"
    plain = read(call(DECIDED))
    assert isinstance(plain, ActionChoice)
    assert plain.decision is None, "nothing is to be decided"
    assert [*common_parameters(PLAIN)] == ["reasoning"]
    assert [*common_parameters(DISAGREEING)] == ["reasoning", "decision"]


def test_a_change_that_is_none_or_of_the_side_that_is_right_is_refused() -> None:
    plain = ActionChoice(action="edit", reasoning="so", arguments={})
    assert unfit([], plain) == Refusal(reason="edit changes nothing")
    assert unfit(["add.py"], plain) is None
    code = replace(plain, decision=Decision(wrong="code", item="P1", why="w"))
    assert unfit(["add.py"], code) is None
    assert unfit(["add.py", "test_add.py"], code) == Refusal(
        reason="the decision says that the code is wrong, but test_add.py would change"
    )
    test = replace(plain, decision=Decision(wrong="test", item="P1", why="w"))
    assert unfit(["test_add.py"], test) is None
    assert isinstance(unfit(["add.py"], test), Refusal)


def test_faults_are_found_once_and_only_the_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """By digests: the texts of all versions of all files would fill the memory of a server."""
    monkeypatch.setattr(members, "KNOWN_FAULTS", {})
    monkeypatch.setattr(members, "MAX_KNOWN_FAULTS", 2)
    files = {f"{number}.py": f"x = {number}" for number in range(5)}
    assert members.faults_of(files) == {}
    assert [path for path, _ in members.KNOWN_FAULTS] == ["3.py", "4.py"]
    found = members.faults_of({"4.py": "x = 4", "5.py": "x ="})
    assert list(found) == ["5.py"]
    assert [path for path, _ in members.KNOWN_FAULTS] == ["4.py", "5.py"]
    assert members.faults_of({"5.py": "x ="}) == found
    assert members.faults_of({"5.py": "x = 5"}) == {}
