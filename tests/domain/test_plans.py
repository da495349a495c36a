"""Plans: what is shown is what is parsed is what is saved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.domain.plans import (
    Check,
    CommandSucceeds,
    FileExists,
    Judged,
    PictureExists,
    Plan,
    Refusal,
    Requirement,
    Serves,
    ShowsWindow,
    TestsPass,
    parse_check,
    parse_plan,
    plan_digest,
    plan_text,
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
