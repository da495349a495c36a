"""Plans: what is shown is what is parsed is what is saved."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from septet.domain.plans import (
    CUSTOM_CHECKS,
    Check,
    CommandSucceeds,
    CustomCheck,
    FileExists,
    HoldableCheck,
    Judged,
    PictureExists,
    Plan,
    Refusal,
    Requirement,
    Serves,
    ShowsWindow,
    TestsPass,
    check_text,
    gives_input,
    is_held,
    open_plan_text,
    parse_amendment,
    parse_check,
    parse_plan,
    plan_digest,
    plan_text,
    without_held,
)

WORDS = st.from_regex(r"[A-Za-z][\w ,()'/-]{0,40}[A-Za-z)]", fullmatch=True)
PATHS = st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8}){0,2}\.[a-z]{1,4}", fullmatch=True)
CHECKS: st.SearchStrategy[Check] = st.one_of(
    PATHS.map(lambda path: TestsPass(target=path)),
    PATHS.map(lambda path: FileExists(path=path)),
    PATHS.map(lambda path: PictureExists(path=path)),
    PATHS.map(lambda path: CommandSucceeds(command=f"python {path}")),
    PATHS.map(lambda path: CommandSucceeds(command=f"python {path} -v", prints="a => b")),
    PATHS.map(lambda path: Serves(path=f"/{path}")),
    PATHS.map(lambda path: Serves(path=f"/{path}", prints="a => b")),
    st.sampled_from([Judged(), Judged(by="person"), ShowsWindow()]),
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    parts = draw(st.lists(st.tuples(WORDS, CHECKS), min_size=1, max_size=7))
    items = tuple(
        Requirement(id=f"P{n}", text=text, check=check) for n, (text, check) in enumerate(parts, start=1)
    )
    return Plan(items=items, run=draw(st.sampled_from(["", "python main.py", "python -m app --port 8000"])))


@given(plans())
def test_a_plan_survives_being_written_and_read(plan: Plan) -> None:
    assert parse_plan(plan_text(plan)) == plan


@given(plans(), st.data())
def test_a_requirement_with_several_checks_is_told_once_and_read_as_it_was(
    plan: Plan, data: st.DataObject
) -> None:
    texts = data.draw(st.lists(st.sampled_from(["adds", "prints"]), min_size=7, max_size=7))
    items = tuple(replace(one, text=text) for one, text in zip(plan.items, texts, strict=False))
    told = plan_text(replace(plan, items=items))
    assert parse_plan(told) == replace(plan, items=items)


def test_each_check_says_which_requirement_it_is_of() -> None:
    plan = parse_plan(
        "1. adds\n   check: judged\n   check: file a.py\n   check: held a.f(1) => 2\n2. prints\n"
    )
    assert isinstance(plan, Plan)
    assert plan_text(plan).split("\n")[:6] == [
        "1. adds",
        "   check P1: judged reviewer",
        "   check P2: file a.py",
        "   check P3: held a.f(1) => 2",
        "2. prints",
        "   check P4: judged reviewer",
    ]
    assert "   check P3: held back\n" in open_plan_text(plan)


@pytest.mark.parametrize("text", ["command python a.py 3 => 6", "serves /double?of=3 => 6", "a.f(1) => 2"])
def test_examples_commands_and_requests_can_be_held_back(text: str) -> None:
    plan = parse_plan(f"1. doubles\n   check: held {text}\n")
    assert isinstance(plan, Plan)
    assert f"   check: held {text}\n" in plan_text(plan)
    assert "   check: held back\n" in open_plan_text(plan)
    assert is_held(plan.items[0].check)
    assert isinstance(parse_check("held tests test_a.py"), Refusal), "tests are files of the version"


@pytest.mark.parametrize(
    ("text", "gives"),
    [
        ("command python a.py 3 => 6", True),
        ("command echo 3 | python a.py => 6", True),
        ("command python a.py => hello", False),
        ("command python -m a => hello", False),
        ("serves /double?of=3 => 6", True),
        ("serves / => hello", False),
        ("example a.f(1) => 2", True),
    ],
)
def test_what_gives_a_program_no_input_cannot_be_known_by_heart(text: str, gives: bool) -> None:
    check = parse_check(text)
    assert isinstance(check, HoldableCheck)
    assert gives_input(check) == gives


def test_planners_may_decorate_their_lists() -> None:
    text = (
        "Here is the plan:\n\n**1) Adds numbers**\n   - **check:** `tests test_add.py::test_sum`\n"
        "2. Prints\n**run:** `python add.py`\n"
    )
    assert parse_plan(text) == Plan(
        items=(
            Requirement(id="P1", text="Adds numbers", check=TestsPass(target="test_add.py::test_sum")),
            Requirement(id="P2", text="Prints", check=Judged()),
        ),
        run="python add.py",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I will do my best.", "no numbered requirement"),
        ("1. Adds\n```python\nadd()\n```", "no code blocks"),
        ("1. Adds\n   check: hope", "is none of"),
        ("1. Adds\n   check: tests", "is none of"),
        ("1. Adds\n   check: serves", "is none of"),
        ("1. Adds\n   check: serves hope", "is none of"),
        ("", "no numbered requirement"),
    ],
)
def test_what_is_no_plan_is_refused_with_the_reason(text: str, reason: str) -> None:
    plan = parse_plan(text)
    assert isinstance(plan, Refusal)
    assert reason in plan.reason


def test_an_approval_names_exactly_one_text() -> None:
    plan = Plan(items=(Requirement(id="P1", text="Adds"),))
    assert plan_digest(plan) != plan_digest(Plan(items=(Requirement(id="P1", text="Adds!"),)))


@given(st.text())
def test_no_check_text_is_an_accident(text: str) -> None:
    assert parse_check(text) is not None


def requirements(text: str) -> list[tuple[str, str]]:
    plan = parse_plan(text)
    assert isinstance(plan, Plan), plan
    return [(item.text, check_text(item.check)) for item in plan.items]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("1. **It greets**", "It greets"),
        ("1. **Greeting**: it greets by name", "Greeting: it greets by name"),
        ("**1. It greets**", "It greets"),
        ("**1.** It greets", "It greets"),
        ("### 1. It greets", "It greets"),
        ("1) *It* greets **you**", "*It* greets you"),
        ("1. it computes 2**3**4", "it computes 2**3**4"),
        ("1. `hello` greets", "`hello` greets"),
        ("**1. Zero stays:** it is `0s`", "Zero stays: it is `0s`"),
    ],
)
def test_a_title_keeps_its_words(line: str, text: str) -> None:
    assert requirements(line) == [(text, "judged reviewer")]


def test_sub_bullets_and_continuation_lines_belong_to_their_requirement() -> None:
    text = """\
Here is the plan.

1. It greets
   - by name
   * politely,
     in English
   check: command python a.py => Hi
2. It counts what
   it has greeted
   check: tests test_a.py
   and never forgets
3. It ends
   1) at once

remember: names are short
run: python a.py

That is all.
"""
    assert requirements(text) == [
        ("It greets; by name; politely, in English", "command python a.py => Hi"),
        ("It counts what it has greeted and never forgets", "tests test_a.py"),
        ("It ends", "judged reviewer"),
        ("at once", "judged reviewer"),
    ]


@pytest.mark.parametrize(
    "checks",
    [
        "   check: tests test_a.py\n   check: command python a.py => Hi\n",
        "   check 1: tests test_a.py\n   check 2: command python a.py => Hi\n",
        "   checks:\n   - tests test_a.py\n   - `command python a.py => Hi`\n",
        "   - *check*: tests test_a.py\n   • _check:_ command python a.py => Hi\n",
        "   check: tests test_a.py\n   - also check: command python a.py => Hi\n",
    ],
)
def test_every_check_of_a_requirement_is_kept(checks: str) -> None:
    assert requirements(f"1. It greets\n{checks}2. It ends\n") == [
        ("It greets", "tests test_a.py"),
        ("It greets", "command python a.py => Hi"),
        ("It ends", "judged reviewer"),
    ]


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("command `python a.py 2 3` => `5`", CommandSucceeds(command="python a.py 2 3", prints="5")),
        ("`command python a.py 2 3 => 5`", CommandSucceeds(command="python a.py 2 3", prints="5")),
        ("command `python a.py`", CommandSucceeds(command="python a.py")),
        ("`command python a.py 2 3` => `5`", CommandSucceeds(command="python a.py 2 3", prints="5")),
        ("command echo `date`", CommandSucceeds(command="echo `date`")),
        ("command `date`; echo `pwd`", CommandSucceeds(command="`date`; echo `pwd`")),
        ("tests `test_a.py::test_b`", TestsPass(target="test_a.py::test_b")),
        ("serves `/` => `Hi`", Serves(path="/", prints="Hi")),
        ("file ``a.txt``", FileExists(path="a.txt")),
    ],
)
def test_ticks_around_a_check_are_not_part_of_it(text: str, check: Check) -> None:
    assert parse_check(text) == check


@given(st.lists(WORDS, min_size=1, max_size=6))
def test_no_word_of_a_list_vanishes(words: list[str]) -> None:
    text = "1. It does\n" + "\n".join(f"   - {one}" for one in words)
    (only,) = requirements(text)
    assert all(one in only[0] for one in words)


@pytest.mark.parametrize("text", ["none", "none, it needs a file", "`None`", "n/a", "-", "(not needed)"])
def test_who_says_that_nothing_is_run_names_no_command(text: str) -> None:
    plan = parse_plan(f"1. It counts\n**run:** {text}\n")
    assert isinstance(plan, Plan)
    assert plan.run == ""


AGREED = Plan(
    items=(
        Requirement(id="P1", text="adds", check=TestsPass(target="test_a.py")),
        Requirement(id="P2", text="adds", check=Serves(path="/")),
    ),
    run="python a.py",
)


@pytest.mark.parametrize(
    ("reply", "texts", "run"),
    [
        ("1. clears\n   check: tests test_a.py::test_clear", ["adds", "adds", "clears"], "python a.py"),
        ("7. **clears**\n   check: judged\nrun: python b.py", ["adds", "adds", "clears"], "python b.py"),
        ("No new requirement: P1 shows it.", ["adds", "adds"], "python a.py"),
        ("1. adds\n   check: tests test_b.py\n2. clears\n   check: judged", ["adds", "clears"], ""),
    ],
    ids=["one more", "another command", "none", "the whole plan"],
)
def test_what_a_planner_says_of_a_wish_is_added_to_the_plan(reply: str, texts: list[str], run: str) -> None:
    plan = parse_amendment(reply, AGREED)
    assert not isinstance(plan, Refusal), plan
    assert [item.text for item in plan.items] == texts
    assert [item.id for item in plan.items] == [f"P{place}" for place in range(1, len(texts) + 1)]
    assert plan.run == run


def test_words_without_a_requirement_are_no_answer_to_a_wish() -> None:
    assert isinstance(parse_amendment("Fine.", AGREED), Refusal)


def test_a_kind_of_check_that_a_program_has_added_is_read_and_written_like_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(CUSTOM_CHECKS, "melody", Form("melody", "melody FILE: it has a tune"))
    for text, argument in (("melody a.mid", "a.mid"), ("melody", "")):
        check = CustomCheck(kind="melody", argument=argument)
        assert parse_check(text) == check
        assert check_text(check) == text
    refused = parse_check("tune a.mid")
    assert isinstance(refused, Refusal)
    assert refused.reason.startswith("'check: tune a.mid' is none of: ")
    assert refused.reason.endswith(" | melody FILE: it has a tune")


class Form(NamedTuple):
    name: str
    form: str


def test_without_what_is_held_back_the_rest_of_a_plan_stays() -> None:
    known, held = (
        CommandSucceeds(command="python a.py 1"),
        CommandSucceeds(command="python a.py 2", held=True),
    )
    items = tuple(Requirement(id=f"P{n}", text="t", check=one) for n, one in enumerate((known, held), 1))
    assert without_held(Plan(items=items, run="python a.py")) == Plan(items=items[:1], run="python a.py")


@pytest.mark.parametrize(
    ("check", "text", "by"),
    [
        ("judged the README names it", "1. documented; the README names it", "reviewer"),
        ("judged by the person: it looks calm", "1. documented; it looks calm", "person"),
        ("`judged` (last resort)", "1. documented", "reviewer"),
        ("judged: the reviewer sees a table", "1. documented; the reviewer sees a table", "reviewer"),
    ],
)
def test_words_beside_judged_belong_to_the_requirement(check: str, text: str, by: str) -> None:
    plan = parse_plan(f"1. documented\n   check: {check}\n")
    assert isinstance(plan, Plan)
    assert plan_text(plan) == f"{text}\n   check: judged {by}\n"
