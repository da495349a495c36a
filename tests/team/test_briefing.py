"""What a member is told: asserted byte for byte."""

import pytest
from msgspec.structs import replace
from team.states import PLAN, STARTED, chat, planned, ran, reviewed, version

from septet.domain.events import (
    Confirmation,
    EnvironmentProbed,
    ExampleGiven,
    ModelAnswered,
    PersonSpoke,
    PlanProposed,
    ReplyRefused,
    RunFinished,
    TurnOpened,
    VersionWritten,
)
from septet.domain.files import FileChange
from septet.domain.messages import Answer
from septet.domain.plans import Plan, Requirement, TestsPass, plan_text
from septet.domain.runs import RunResult
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.team.briefing import (
    MOST_PACKAGES,
    edited_files_section,
    environment_section,
    example_section,
    head_and_tail,
    language_line,
    run_section,
)
from septet.ways.iterate.briefing import briefing
from septet.ways.prompts import prompt_text

CODER = RoleSpec(name="coder", role="coder")
REVIEWER = RoleSpec(name="reviewer", role="reviewer")
PLANNER = RoleSpec(name="planner", role="planner")
SOURCES = {"add.py": "def add(a, b):\n    return a - b\n", "test_add.py": "def test_sum(): ...\n"}
PLAN_TEXT = """\
1. add gives the sum
   check: tests test_add.py::test_sum
2. it prints
   check: command python add.py 2 3 => 5
run: python add.py 1 1"""
AROUND = environment_section(State())


def test_the_first_time_the_coder_sees_goal_and_plan_only() -> None:
    system, user = briefing(CODER, chat([*planned(), TurnOpened(speaker="coder")]), {})
    assert (system.role, system.text) == ("system", prompt_text("septet.ways.iterate", "coder"))
    assert (user.role, user.text) == ("user", f"# Goal\nadd numbers\n\n# Plan\n{PLAN_TEXT}\n\n{AROUND}")


def test_after_that_exactly_goal_plan_newest_code_newest_review_and_newest_run() -> None:
    events = [*planned(), *version(1, "a"), *ran(1, "a", green=False), *reviewed(1, accept=False)]
    _, user = briefing(CODER, chat([*events, TurnOpened(speaker="coder")]), SOURCES)
    assert user.text == (
        f"# Goal\nadd numbers\n\n# Plan\n{PLAN_TEXT}\n\n"
        "# Code, version 1\n\n"
        "```python add.py\ndef add(a, b):\n    return a - b\n```\n\n"
        "```python test_add.py\ndef test_sum(): ...\n```\n\n"
        "# Review of version 1\nverdict: revise\n- F1 [must] P1 (add.py:5): it subtracts\n\n"
        "# What the runner saw\n\n"
        "## run: `run` → exit 0\nstdout:\n2\n\n\n"
        "## tests: `tests` → exit 1\nstdout:\n=== short test summary info ===\n"
        "FAILED test_add.py::test_sum - assert -1 == 5\n\n\n"
        "## check P2: `check P2` → exit 0\nstdout:\n5\n\n\n"
        "## tests alone: `tests alone` → exit 2\n\n"
        f"- P1 NOT met: 1 passed\n- P2 met: exit 0, prints '5'\n\n{AROUND}"
    )


def drew(*changes: FileChange) -> RunFinished:
    result = RunResult(exit_code=0, changes=changes)
    return RunFinished(id="1", purpose="run", command="python add.py", tree="t", result=result)


def test_the_reviewer_sees_the_pictures_that_the_newest_version_drew() -> None:
    old = [*planned(), *version(1, "a"), drew(FileChange(path="old.png", kind="new", size=9, sha256="o"))]
    first = drew(FileChange(path="clock.png", kind="new", size=9, sha256="1"))
    second = drew(
        FileChange(path="clock.png", kind="changed", size=9, sha256="2"),
        FileChange(path="huge.png", kind="new", size=9 << 20, sha256="h"),
        FileChange(path="table.csv", kind="new", size=9, sha256="c"),
        FileChange(path="Plot.JPG", kind="new", size=9, sha256="p"),
    )
    state = chat([*old, *version(2, "b"), first, second, TurnOpened(speaker="reviewer")])
    _, user = briefing(REVIEWER, state, SOURCES)
    assert user.images == ("2", "p")
    assert user.text.endswith("# Pictures that the program made, as shown\nclock.png, Plot.JPG")
    assert briefing(CODER, state, SOURCES)[1].images == ()
    assert briefing(replace(REVIEWER, form="small"), state, SOURCES)[1].images == ()


def test_a_small_coder_is_told_where_two_programs_disagreed() -> None:
    detail = "add('a', 'B') gives 'aB' here and 'ab' elsewhere"
    contradicted = Confirmation(verdict="contradicted", detail=detail)
    *begun, written = version(1, "a")
    assert isinstance(written, VersionWritten)
    state = chat([*planned(), *begun, replace(written, confirmation=contradicted), *ran(1, "a", green=True)])
    _, user = briefing(replace(CODER, form="small"), state, SOURCES)
    assert "do what the goal says\n- add('a', 'B') gives 'aB' here and 'ab' elsewhere" in user.text
    assert "What failed" not in user.text


def test_a_small_coder_reads_the_goal_as_it_was_written_and_no_fence_to_copy() -> None:
    goal = "add numbers\n\n    >>> add(1, 2)\n    3\n"
    whole = Requirement(id="P1", text=" ".join(goal.split()), check=TestsPass(target="test_add.py"))
    plan = Plan(items=(whole, Requirement(id="P2", text="add(1, 1) == 2")))
    events = [replace(STARTED, goal=goal), PlanProposed(plan=plan), TurnOpened(speaker="coder")]
    system, user = briefing(replace(CODER, form="small"), chat(events), {})
    assert user.text == f"{goal}\nadd(1, 1) == 2"
    assert "no tests" in system.text
    assert "```" not in system.text + user.text


def test_a_small_coder_brings_asserts_where_the_goal_states_no_example() -> None:
    plan = Plan(items=(Requirement(id="P1", text="write add(a, b)", check=TestsPass(target="test_add.py")),))
    events = [replace(STARTED, goal="write add(a, b)"), PlanProposed(plan=plan), TurnOpened(speaker="coder")]
    system, user = briefing(replace(CODER, form="small"), chat(events), {})
    assert user.text == "# Goal\nwrite add(a, b)"
    assert "assert statements" in system.text


@pytest.mark.parametrize(("goal", "is_told"), [("print a clock", True), ("add(1, 2) == 3", False)])
def test_candidates_for_a_function_are_drawn_without_failures_to_copy(goal: str, is_told: bool) -> None:
    plan = Plan(items=(Requirement(id="P1", text=goal, check=TestsPass(target="test_add.py")),))
    begun = [replace(STARTED, goal=goal), PlanProposed(plan=plan)]
    state = chat([*begun, *version(1, "a"), *ran(1, "a", green=False)])
    _, user = briefing(replace(CODER, form="small"), state, SOURCES)
    assert ("What failed last time" in user.text) is is_told


def test_a_plan_is_revised_with_what_the_person_said() -> None:
    events = [
        STARTED,
        PlanProposed(plan=PLAN),
        PersonSpoke(text="also multiply"),
        TurnOpened(speaker="planner"),
    ]
    _, user = briefing(PLANNER, chat(events), {})
    assert user.text == (
        f"# Goal\nadd numbers\n\n# The plan as it is\n{plan_text(PLAN)}\n"
        f"# The person wants it changed\nalso multiply\n\n{AROUND}"
    )


def test_what_is_said_during_a_turn_waits_for_the_next_one() -> None:
    events = [*planned(), TurnOpened(speaker="coder"), PersonSpoke(text="use colours"), *version(1, "a")[1:]]
    _, user = briefing(CODER, chat(events), {})
    assert "use colours" not in user.text
    _, user = briefing(CODER, chat([*events, TurnOpened(speaker="coder")]), SOURCES)
    assert f"{PLAN_TEXT}\n\n# What the person asked for since\n- W1 (new): use colours\n\n# Code" in user.text


def test_a_refused_reply_is_explained_to_its_author_only() -> None:
    refused = ReplyRefused(role="coder", reason="no code block")
    state = chat([*planned(), TurnOpened(speaker="coder"), refused, TurnOpened(speaker="coder")])
    assert "no code block" in briefing(CODER, state, {})[-1].text
    assert "no code block" not in briefing(PLANNER, state, {})[1].text


def test_a_refused_reply_is_shown_back_behind_what_was_asked() -> None:
    said = ModelAnswered(role="coder", answer=Answer(text="```python a.py\n...\n```"))
    refused = ReplyRefused(role="coder", reason="code was left out")
    asked = chat([*planned(), TurnOpened(speaker="coder")])
    state = chat([*planned(), TurnOpened(speaker="coder"), said, refused, TurnOpened(speaker="coder")])
    first, again = briefing(CODER, asked, {}), briefing(CODER, state, {})
    assert again[: len(first)] == first
    assert [message.role for message in again[len(first) :]] == ["assistant", "user"]
    assert again[-2].text == said.answer.text


def test_a_members_own_instructions_follow_its_roles() -> None:
    member = RoleSpec(name="coder", role="coder", instructions="Use type hints.")
    part = prompt_text("septet.ways.iterate", "coder")
    assert briefing(member, chat(planned()), {})[0].text == f"{part}\nUse type hints."


def test_long_output_keeps_its_head_and_above_all_its_tail() -> None:
    text = "start" + "x" * 50_000 + "the error"
    short = head_and_tail(text)
    assert short.startswith("start")
    assert short.endswith("the error")
    assert len(short) < 6_100


def test_what_passing_tests_print_is_not_told() -> None:
    printed = (
        "..\n==== FAILURES ====\n____ test_b ____\nE   assert 1 == 2\n==== PASSES ====\n____ test_a ____\n"
        "---- Captured stdout call ----\nnoise\n==== short test summary info ====\n"
        "PASSED t.py::test_a\nFAILED t.py::test_b\n1 failed, 1 passed in 0.1s\n"
    )
    result = RunResult(exit_code=1, stdout=printed, stderr="", seconds=0.1)
    told = run_section(RunFinished(id="1", purpose="tests", command="pytest", tree="t", result=result))
    assert "noise" not in told
    assert "PASS" not in told
    assert "E   assert 1 == 2\n==== short test summary info ====\nFAILED t.py::test_b\n1 failed" in told


RED_EVENTS = [*planned(), *version(1, "a"), *ran(1, "a", green=False)]


def test_an_example_is_told_for_the_failure_that_it_is_for() -> None:
    failure = chat(RED_EVENTS).work.failure
    assert failure
    given = ExampleGiven(failure=failure, code="x = 1\n\n", source="docs", title="One")
    shown = f"# The exemplar\nfor: {failure}\nfrom docs: One\n```python\nx = 1\n```"
    assert example_section(chat([*RED_EVENTS, given])) == [shown]
    none = ExampleGiven(failure=failure)
    assert example_section(chat([*RED_EVENTS, none])) == [f"# The exemplar\nno example for: {failure}"]
    assert example_section(chat([*RED_EVENTS, replace(given, failure="another")])) == []
    assert example_section(chat(RED_EVENTS)) == []


def test_files_that_the_person_changed_are_shown_whole_and_others_are_not() -> None:
    *_, first = version(1, "a")
    *_, second = version(2, "b")
    assert isinstance(second, VersionWritten)
    events = [*planned(), first, replace(second, found=True)]
    shown = "# The person changed this by hand\n\n```python add.py\n" + SOURCES["add.py"] + "```"
    assert edited_files_section(chat(events), SOURCES) == [shown]
    assert edited_files_section(chat([*planned(), first, second]), SOURCES) == []
    both = edited_files_section(chat([*planned(), replace(second, number=1, found=True)]), SOURCES)
    assert both == [f"{shown}\n\n```python test_add.py\n{SOURCES['test_add.py']}```"]
    assert edited_files_section(chat(planned()), SOURCES) == []


@pytest.mark.parametrize(
    ("count", "named"),
    [(0, ""), (MOST_PACKAGES, "p79"), (MOST_PACKAGES + 1, "1 more"), (MOST_PACKAGES + 2, "2 more")],
)
def test_as_many_packages_as_may_be_named_are_named(count: int, named: str) -> None:
    probed = EnvironmentProbed(python="3.12", packages=tuple(f"p{number}" for number in range(count)))
    line = language_line(chat([STARTED, probed]))
    last = f" and {named}." if named else ""
    assert line.startswith("In a sandbox with Python 3.12")
    assert line.endswith(last or "Python 3.12 and its standard library.")
    assert line.count(" p") == min(count, MOST_PACKAGES)
