"""What the person says after the plan was approved is a requirement: told to all, judged, never dropped."""

import pytest
from msgspec.structs import replace
from team.states import PLAN, STARTED, chat, planned, ran, reviewed, said, version

from septet.chat.results import report_table
from septet.domain.events import (
    BaseSurveyed,
    ChatContinued,
    ChatEnded,
    Confirmation,
    Event,
    EvidenceFound,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    ReviewGiven,
    RunFinished,
    TurnOpened,
    VersionWritten,
)
from septet.domain.files import FileRef, tree_of
from septet.domain.plans import Check, CommandSucceeds, Judged, Mends, Requirement, TestsPass, plan_digest
from septet.domain.pytest_report import Outcome, TestCase, TestReport
from septet.domain.runs import Purpose, RunResult
from septet.domain.state import State
from septet.domain.teams import Budget, RoleSpec
from septet.team.caveats import reservations
from septet.team.context import context_of
from septet.team.evidence import (
    FOREIGN_REMEDY,
    NOTHING_CHANGED,
    baseline_problems,
    control_doubts,
    doubts,
    earlier_outcome,
    evidence_report,
    foreign_text,
    is_done,
    is_examined,
    is_only_judged,
    other_shortcomings,
    regressions,
    run_tests,
    shortcomings,
    surviving_controls,
)
from septet.team.evidence import test_problems as suite_problems
from septet.team.floor import End, Move, Speak
from septet.team.reviews import ParsedReview, judge_review
from septet.team.small_form import review_from_evidence
from septet.ways.autocoder.members import act_prompt
from septet.ways.iterate.briefing import briefing
from septet.ways.table import TEAMS, floor_for

TEAM = TEAMS["iterate"]
WISH = "make it blue,\nplease"
DONE = [*planned(), *version(1, "a"), *ran(1, "a", green=True), *reviewed(1, accept=True)]
RESUMED = [*DONE, ChatEnded(reason="done"), PersonSpoke(text=WISH), ChatContinued(budget=Budget())]
SOURCES = {"add.py": "x = 1\n"}


def next_after(events: list[Event]) -> Move:
    return floor_for(TEAM, TEAM.budget)(chat(events))


def told(role: str, events: list[Event]) -> str:
    state = chat([*events, TurnOpened(speaker=role)])
    return briefing(RoleSpec(name=role, role=role), state, SOURCES)[1].text


def wish_line(state: State) -> tuple[str, str, bool, str]:
    line = evidence_report(state)[-1]
    return line.item.id, line.item.text, line.is_met, line.detail


def test_a_wish_is_a_line_of_the_table_that_prevents_done_until_a_new_version_was_reviewed() -> None:
    assert next_after(RESUMED) == Speak(speaker="coder")
    assert wish_line(chat(RESUMED)) == ("W1", "make it blue, please", False, "no version since")
    assert "W1 is not met (no version since)" in shortcomings(chat(RESUMED))
    changed = [*RESUMED, *version(2, "b"), *ran(2, "b", green=True)]
    assert wish_line(chat(changed))[2:] == (False, "not accepted")
    assert next_after(changed) == Speak(speaker="planner"), "who looks whether the wish needs a check"
    assert "they are added to the plan" in told("planner", changed)
    looked = [*changed, TurnOpened(speaker="planner"), PlanProposed(plan=PLAN)]
    assert next_after(looked) == Speak(speaker="reviewer"), "the same plan needs no new approval"
    accepted = [*looked, *reviewed(2, accept=True)]
    assert next_after(accepted) == End(reason="done", detail="every check passed")
    assert wish_line(chat(accepted))[2:] == (True, "accepted by the reviewer")
    assert "✓  W1 make it blue, please" in report_table(chat(accepted))
    assert "only the reviewer's judgement shows W1" in reservations(chat(accepted))


def test_a_wish_that_the_planner_gave_a_check_does_not_rest_on_the_review() -> None:
    def told(*added: Requirement) -> list[str]:
        changed = [*RESUMED, *version(2, "b"), TurnOpened(speaker="planner")]
        plan = replace(PLAN, items=(*PLAN.items, *added))
        return reservations(
            chat([*changed, PlanProposed(plan=plan), *ran(2, "b", green=True), *reviewed(2, accept=True)])
        )

    blue = CommandSucceeds(command="python add.py --colour", prints="blue", held=True)
    assert "only the reviewer's judgement shows W1" in told()
    assert "only the reviewer's judgement shows P3 and W1" in told(Requirement(id="P3", text="it is blue"))
    shown = told(Requirement(id="P3", text="it is blue", check=blue), Requirement(id="P4", text="it is blue"))
    assert not any("judgement" in one for one in shown)


def test_the_same_code_again_does_nothing_for_a_wish() -> None:
    again = [*RESUMED, *version(2, "a")]
    assert not is_done(chat(again))
    assert next_after(again) == Speak(speaker="coder")
    assert "W1" in told("coder", again), "it is told until it is worked in"


@pytest.mark.parametrize("role", ["planner", "coder", "reviewer"])
def test_everybody_who_decides_sees_goal_and_wishes_word_for_word(role: str) -> None:
    text = told(role, RESUMED)
    assert "# Goal\nadd numbers" in text
    assert WISH in text
    later = told(role, [*RESUMED, *version(2, "b"), *ran(2, "b", green=True)])
    assert WISH in later, "also after the coder has heard it"


def test_the_coder_of_the_autocoder_and_small_members_see_it_too() -> None:
    state = chat([*RESUMED, TurnOpened(speaker="coder")])
    coder = RoleSpec(name="coder", role="coder")
    assert WISH in act_prompt(coder, state, context_of(state, SOURCES, {}))[1].text
    for role in ("coder", "reviewer"):
        member = RoleSpec(name=role, role=role, form="small")
        assert WISH in briefing(member, state, SOURCES)[1].text


def test_what_is_said_before_the_plan_is_approved_is_the_planners() -> None:
    assert chat([STARTED, PlanProposed(plan=PLAN), PersonSpoke(text="shorter")]).plan.wishes == ()


CONSULTED = [*DONE[: -len(reviewed(1, accept=True))], TurnOpened(speaker="proxy")]


def test_feedback_at_a_review_prevents_done_and_reaches_the_coder() -> None:
    events = [*CONSULTED, PersonSpoke(text="the hand is too thin"), TurnOpened(speaker="reviewer")]
    for verdict in (ParsedReview(verdict="accept", findings=()), ParsedReview(verdict="revise", findings=())):
        counts, why = judge_review(chat(events), verdict)
        assert counts == "revise"
        assert "W1 is not met" in why or verdict.verdict == "revise"
    given = ReviewGiven(version=1, tree="", verdict="revise", remarks=("the hand is too thin",))
    reviewed_so = [*events, said("reviewer", "verdict: accept"), given]
    assert next_after(reviewed_so) == Speak(speaker="coder")
    assert "the hand is too thin" in told("coder", reviewed_so)
    assert chat(reviewed_so).work.green_rejections == 0, "it is the person who wants more, not the reviewer"


def test_a_review_by_evidence_alone_does_not_drop_the_persons_words() -> None:
    events = [*CONSULTED, PersonSpoke(text="the hand is too thin"), TurnOpened(speaker="reviewer")]
    review = review_from_evidence(chat(events))
    assert review is not None
    assert (review.verdict, review.remarks) == ("revise", ("the hand is too thin",))


def test_candidates_that_agree_do_not_judge_a_wish() -> None:
    *begun, written = version(2, "b")
    assert isinstance(written, VersionWritten)
    agreed = replace(written, confirmation=Confirmation(verdict="agreed"))
    after = [*begun, agreed, *ran(2, "b", green=True), TurnOpened(speaker="reviewer")]
    assert review_from_evidence(chat([*DONE, *after])) is not None
    assert review_from_evidence(chat([*RESUMED, *after])) is None


def test_words_during_the_coders_turn_wait_for_the_next_version() -> None:
    opened, *rest = version(2, "b")
    events = [*RESUMED, opened, PersonSpoke(text="and round"), *rest, *ran(2, "b", green=True)]
    assert [wish.version for wish in chat(events).plan.wishes] == [2, 0]
    assert next_after([*events, *reviewed(2, accept=True)]) == Speak(speaker="coder")


def test_code_that_nobody_of_the_team_wrote_does_nothing_for_a_wish() -> None:
    _, _, written = version(2, "b")
    assert isinstance(written, VersionWritten)
    found = [*RESUMED, TurnOpened(speaker="runner"), replace(written, found=True)]
    assert [wish.version for wish in chat(found).plan.wishes] == [0]


@pytest.mark.parametrize("words", ["thank you!", "Looks good to me", "great, thanks"])
def test_thanks_and_praise_ask_for_nothing(words: str) -> None:
    assert next_after([*DONE, PersonSpoke(text=words)]) == End(reason="done", detail="every check passed")
    assert chat([*CONSULTED, PersonSpoke(text=words)]).plan.wishes == ()
    assert chat([*CONSULTED, PersonSpoke(text=f"{words} but blue")]).plan.wishes != ()


def test_the_table_says_who_wrote_what_shows_each_requirement() -> None:
    state = chat([*planned(), *version(1, "a"), *ran(1, "a", green=True)])
    assert [(line.item.id, line.author, line.own_tests) for line in evidence_report(state)] == [
        ("P1", "coder", True),
        ("P2", "planner", False),
    ]
    table = report_table(state)
    assert "coder only" in table
    assert "planner" in table


@pytest.mark.parametrize("width", [60, 100, 200])
def test_the_table_fits_the_width_and_wraps_what_is_long(width: int) -> None:
    text = "the hands stand where a clock's hands stand on the hour, at every hour of the day"
    plan = replace(PLAN, items=(replace(PLAN.items[0], text=text), PLAN.items[1]))
    events = [replace(one, plan=plan) if isinstance(one, PlanProposed) else one for one in planned()]
    lines = report_table(chat([*events, *version(1, "a"), *ran(1, "a", green=True)]), width).splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)
    assert {"hands", "hour,", "day"} <= set(" ".join(lines).split())


def test_a_check_that_the_person_wrote_stays_the_persons_in_the_planners_next_plan() -> None:
    mine = replace(PLAN, items=(PLAN.items[0], replace(PLAN.items[1], check=CommandSucceeds(command="x"))))
    more = replace(
        mine, items=(*mine.items, Requirement(id="P3", text="t", check=CommandSucceeds(command="y")))
    )
    state = chat(
        [STARTED, PlanProposed(plan=PLAN), PlanProposed(plan=mine, by="person"), PlanProposed(plan=more)]
    )
    assert [line.author for line in evidence_report(state)][1:] == ["person", "planner"]


@pytest.mark.parametrize(
    ("command", "tests"),
    [
        ("python add.py 2 3", None),
        ("python -m pytest -q", ""),
        ("python -m pytest test_add.py::test_sum", "test_add.py::test_sum"),
        ("python test_add.py", "test_add.py"),
    ],
)
def test_a_command_that_runs_tests_is_as_good_as_their_author(command: str, tests: str | None) -> None:
    assert run_tests(command) == tests


def test_tests_that_the_person_wrote_by_hand_are_the_persons() -> None:
    files = (FileRef(path="add.py", sha256="a", size=9), FileRef(path="test_add.py", sha256="h", size=9))
    by_hand = VersionWritten(number=2, files=files, tree=tree_of(files), found=True)
    after = (FileRef(path="add.py", sha256="b", size=9), files[1])
    events = [*planned(), *version(1, "a"), by_hand]
    assert evidence_report(chat(events))[0].author == "person"
    kept = VersionWritten(number=3, files=after, tree=tree_of(after))
    assert evidence_report(chat([*events, TurnOpened(speaker="coder"), kept]))[0].author == "person"


def test_a_strict_team_takes_nothing_as_met_by_the_coders_own_tests_alone() -> None:
    strict = replace(STARTED, team=replace(TEAM, strict=True))
    green = [*planned()[1:], *version(1, "a"), *ran(1, "a", green=True), *reviewed(1, accept=True)]
    assert is_done(chat([STARTED, *green]))
    assert not is_done(chat([strict, *green]))
    assert shortcomings(chat([strict, *green])) == [
        "P1 is not met (1 passed; nothing but the coder's own tests shows it)"
    ]
    both = replace(PLAN, items=(PLAN.items[0], replace(PLAN.items[1], text=PLAN.items[0].text)))
    plan = [PlanProposed(plan=both), PlanApproved(plan=plan_digest(both))]
    assert is_done(chat([strict, *plan, *green[5:]])), (
        "another check of the same requirement is the planner's"
    )


def test_a_wish_becomes_a_requirement_whose_check_has_to_pass_before_done() -> None:
    blue = Requirement(id="P3", text="it is blue", check=CommandSucceeds(command="python add.py --colour"))
    longer = replace(PLAN, items=(*PLAN.items, blue))
    changed = [*RESUMED, *version(2, "b"), *ran(2, "b", green=True)]
    amended = [*changed, TurnOpened(speaker="planner"), PlanProposed(plan=longer)]
    assert next_after(amended) == Speak(speaker="proxy"), "another plan has to be approved"
    approved = [*amended, TurnOpened(speaker="proxy"), PlanApproved(plan=plan_digest(longer))]
    assert next_after(approved) == Speak(speaker="runner")
    state = chat(approved)
    assert [line.detail for line in evidence_report(state)][2:] == ["not checked", "not accepted"]
    assert not is_done(chat([*approved, *reviewed(2, accept=True)]))


REPOSITORY = BaseSurveyed(kind="git", root="/p", tests="pytest", tests_source="pyproject.toml")


def suite(tree: str, purpose: Purpose, **outcomes: Outcome) -> RunFinished:
    cases = tuple(TestCase(id=f"test_add.py::{name}", outcome=how) for name, how in outcomes.items())
    result = RunResult(exit_code=0, tests=TestReport(cases=cases))
    return RunFinished(id=purpose, purpose=purpose, command="pytest", tree=tree, result=result)


@pytest.mark.parametrize(
    ("base", "now", "found", "author"),
    [
        ({"sum": "failed"}, {"sum": "passed"}, {"sum": "passed"}, "repository"),
        ({"sum": "failed"}, {"sum": "passed", "own": "passed"}, {"sum": "passed"}, "repository"),
        ({"sum": "passed"}, {"sum": "passed", "own": "passed"}, {"sum": "passed"}, "coder"),
        ({"sum": "passed"}, {"sum": "passed"}, {"sum": "passed"}, "repository"),
        ({"sum": "failed"}, {"sum": "passed"}, {"sum": "failed"}, "coder"),
        ({"sum": "failed"}, {"sum": "passed"}, {}, "coder"),
        ({"sum": "failed"}, {"sum": "passed"}, None, "coder"),
    ],
)
def test_the_repositorys_tests_show_a_requirement_where_they_pass_as_they_were_found(
    base: dict[str, Outcome], now: dict[str, Outcome], found: dict[str, Outcome] | None, author: str
) -> None:
    written = version(1, "a")
    changed = written[-1]
    assert isinstance(changed, VersionWritten)
    plan = replace(PLAN, items=(replace(PLAN.items[0], check=TestsPass(target="test_add.py")),))
    before: list[Event] = [
        STARTED,
        REPOSITORY,
        PlanProposed(plan=plan),
        suite("", "baseline", **base),
        *written,
    ]
    runs = [suite(changed.tree, "tests", **now)]
    runs += [] if found is None else [suite(changed.tree, "tests as found", **found)]
    assert evidence_report(chat([*before, *runs]))[0].author == author


def test_what_only_the_folder_has_is_the_repositorys_and_an_empty_folder_has_nothing() -> None:
    program = FileRef(path="add.py", sha256="a", size=9)
    written = VersionWritten(number=1, files=(program,), tree=tree_of((program,)))
    for survey, author in ((REPOSITORY, "repository"), (replace(REPOSITORY, kind="empty"), "coder")):
        state = chat([STARTED, survey, *planned()[1:], written])
        assert evidence_report(state)[0].author == author


def test_a_requirement_that_an_earlier_version_met_and_this_one_does_not_is_a_regression() -> None:
    first = [*planned(), *version(1, "a"), *ran(1, "a", green=True)]
    second = [*first, *version(2, "b"), *ran(2, "b", green=False)]
    assert [earlier_outcome(chat(first), item) for item in ("P1", "P2")] == [None, None]
    assert regressions(chat(first)) == []
    assert [line.item.id for line in regressions(chat(second))] == ["P1"]
    assert [earlier_outcome(chat(second), item) for item in ("P1", "P2")] == [True, True]
    third = chat([*second, *version(3, "c")])
    assert [earlier_outcome(third, item) for item in ("P1", "P2")] == [False, True]
    never = [*planned(), *version(1, "a"), *ran(1, "a", green=False), *version(2, "b")]
    assert regressions(chat([*never, *ran(2, "b", green=False)])) == [], "no version met it"


@pytest.mark.parametrize(
    ("now", "found", "problems"),
    [
        ({"one": "passed", "two": "passed"}, None, []),
        ({"two": "passed"}, None, ["1 test that passed before is gone (test_add.py::one)"]),
        ({}, None, ["2 tests that passed before are gone (test_add.py::one)"]),
        (
            {"one": "passed", "two": "passed"},
            {"one": "passed", "two": "failed"},
            ["1 test that passed before fails as it was found (test_add.py::two)"],
        ),
        (
            {"one": "passed", "two": "passed"},
            {"one": "failed", "two": "failed"},
            ["2 tests that passed before fail as they were found (test_add.py::one)"],
        ),
    ],
)
def test_tests_of_the_base_that_are_gone_or_fail_are_counted_and_the_first_is_named(
    now: dict[str, Outcome], found: dict[str, Outcome] | None, problems: list[str]
) -> None:
    written = version(1, "a")
    changed = written[-1]
    assert isinstance(changed, VersionWritten)
    before = [STARTED, REPOSITORY, suite("", "baseline", one="passed", two="passed"), *written]
    runs = [suite(changed.tree, "tests", **now)]
    runs += [] if found is None else [suite(changed.tree, "tests as found", **found)]
    assert baseline_problems(chat([*before, *runs])) == problems


def judged_plan(*checks: Check) -> list[Event]:
    items = [
        Requirement(id=f"P{number}", text=f"t{number}", check=one) for number, one in enumerate(checks, 1)
    ]
    plan = replace(PLAN, items=tuple(items))
    return [STARTED, PlanProposed(plan=plan), PlanApproved(plan=plan_digest(plan))]


def test_what_only_a_person_can_judge_needs_no_evidence_and_all_else_does() -> None:
    command = CommandSucceeds(command="python add.py 2 3", prints="5")
    shown = [*version(1, "a"), *ran(1, "a", green=True)]
    both = chat([*judged_plan(Judged(), command), *shown])
    assert is_examined(both)
    assert not is_only_judged(both)
    unseen = [one for one in shown if not isinstance(one, EvidenceFound)]
    assert not is_examined(chat([*judged_plan(Judged(), command), *unseen]))
    judged = chat([*judged_plan(Judged(), Judged()), *unseen])
    assert is_examined(judged)
    assert is_only_judged(judged)
    assert not is_only_judged(chat([*judged_plan(command), *shown]))


def test_tests_that_notice_a_program_without_its_functions_leave_no_doubt() -> None:
    green = [*planned(), *version(1, "a"), *ran(1, "a", green=True)]
    assert control_doubts(chat(green), "test_add.py") == []
    tree = chat(green).work.files
    hollow = replace(suite(tree_of(tree), "tests alone", test_sum="passed"), about="hollow")
    assert control_doubts(chat([*green, hollow]), "test_add.py") == [
        "they pass with functions that do nothing, so they prove nothing"
    ]


def test_tests_of_a_package_from_elsewhere_are_said_to_be_so() -> None:
    told = foreign_text(TestReport(foreign=("add is that of /usr/lib", "x")))
    assert told == f"add is that of /usr/lib and not from the workspace ({FOREIGN_REMEDY})"


def test_what_no_requirement_tells_is_told_apart_and_else_that_nothing_notices_the_change() -> None:
    unseen = [
        replace(one, held_before=True) if isinstance(one, EvidenceFound) else one
        for one in ran(1, "a", green=True)
    ]
    begun = [STARTED, REPOSITORY, *planned()[1:], suite("", "baseline", test_sum="passed"), *version(1, "a")]
    state = chat([*begun, *unseen])
    assert other_shortcomings(state) == shortcomings(state) == [NOTHING_CHANGED]
    unmet = [
        replace(one, passed=False) if isinstance(one, EvidenceFound) and one.item == "P2" else one
        for one in unseen
    ]
    state = chat([*begun, *unmet])
    assert other_shortcomings(state) == []
    assert shortcomings(state) == ["P2 is not met (exit 0, prints '5')"]


def test_a_check_that_mends_the_repositorys_tests_is_the_repositorys() -> None:
    plan = replace(PLAN, items=(Requirement(id="P1", text="t", check=Mends(target="test_a.py")),))
    assert evidence_report(chat([STARTED, PlanProposed(plan=plan)]))[0].author == "repository"


@pytest.mark.parametrize(
    ("code", "problems"),
    [(0, []), (1, ["the test run did not end well"])],
)
def test_tests_that_pass_in_a_run_that_does_not_end_well_are_a_problem(
    code: int, problems: list[str]
) -> None:
    written = version(1, "a")
    changed = written[-1]
    assert isinstance(changed, VersionWritten)
    tests = suite(changed.tree, "tests", sum="passed")
    ended = replace(tests, result=replace(tests.result, exit_code=code))
    assert suite_problems(chat([STARTED, *written, ended])) == problems
    assert suite_problems(chat([STARTED, *written])) == ["no test ran"]


def test_tests_without_a_program_prove_nothing_unless_the_program_was_there() -> None:
    test = FileRef(path="test_add.py", sha256="t", size=9)
    only = VersionWritten(number=1, files=(test,), tree=tree_of((test,)))
    assert doubts(chat([STARTED, only])) == ["there are tests and no program, so they prove nothing"]
    assert doubts(chat([replace(STARTED, existing=True), only])) == []
    assert doubts(chat([STARTED, *version(1, "a")])) == []


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (RunResult(exit_code=1), []),
        (RunResult(exit_code=0), ["the tests pass with functions that do nothing, so they prove nothing"]),
        (RunResult(exit_code=1, stopped_by="time"), []),
    ],
)
def test_tests_that_pass_with_functions_that_do_nothing_are_doubted(
    result: RunResult, told: list[str]
) -> None:
    written = version(1, "a")
    changed = written[-1]
    assert isinstance(changed, VersionWritten)
    hollow = replace(suite(changed.tree, "tests alone"), about="hollow", result=result)
    assert doubts(chat([STARTED, *written, hollow])) == told


def test_where_it_is_not_known_how_tests_end_without_the_program_that_is_said() -> None:
    written = version(1, "a")
    changed = written[-1]
    assert isinstance(changed, VersionWritten)
    stopped = RunResult(exit_code=1, stopped_by="time")
    alone = replace(suite(changed.tree, "tests alone"), result=stopped)
    assert doubts(chat([STARTED, *written, alone])) == [
        "whether the tests fail without the program is unknown: the run was stopped by the time limit"
    ]


def test_a_control_on_which_no_test_of_the_target_ran_or_one_failed_is_no_survivor() -> None:
    written = version(1, "a")
    changed = written[-1]
    assert isinstance(changed, VersionWritten)

    def survivors(**outcomes: Outcome) -> set[str]:
        control = replace(suite(changed.tree, "tests alone", **outcomes), about="hollow")
        return surviving_controls(chat([STARTED, *written, control]), "test_add.py")

    assert survivors(one="passed", two="passed") == {"hollow"}
    assert survivors(one="passed", two="failed") == set()
    assert survivors() == set()
