"""No forgery is taken for evidence, and honest programs of every kind are."""

from pathlib import Path

import pytest
from agents.evidence_runs import examine
from agents.forgeries import (
    CONSTANT_COMMANDS,
    FORGERIES,
    HEAD,
    INHERENT,
    KNOWN_COMMANDS,
    MAIN,
    MISLEADING,
    RUN,
    SEEN_BY_EXAMPLES,
    TEST,
)
from agents.honest_programs import HONEST
from sampling import sampled

from septet.domain.plans import CommandSucceeds, ExampleHolds, Plan, Requirement, TestsPass, parse_plan
from septet.team.caveats import reservations
from septet.team.evidence import evidence_report, shortcomings

pytestmark = pytest.mark.anyio
TESTED = Requirement(id="P1", text="add gives the sum", check=TestsPass(target="test_add.py::test_sum"))
PRINTED = Requirement(id="P2", text="it prints the sum", check=CommandSucceeds(command=RUN, prints="5"))
HELD = Requirement(
    id="P3",
    text="it prints the sum",
    check=CommandSucceeds(command="python add.py 20 11", prints="31", held=True),
)
KNOWN = "the coder knew every example of P2"


@pytest.mark.parametrize("name", sampled(sorted(FORGERIES), every=18))
async def test_a_forgery_is_not_taken_for_evidence(tmp_path: Path, cache: Path, name: str) -> None:
    state = await examine(tmp_path, cache, FORGERIES[name], Plan(items=(TESTED,)))
    assert shortcomings(state)
    state = await examine(tmp_path, cache, FORGERIES[name], Plan(items=(TESTED, PRINTED), run=RUN))
    assert shortcomings(state)


@pytest.mark.parametrize("name", sampled(sorted(INHERENT), every=8))
async def test_what_the_coders_own_tests_cannot_show_is_not_said_to_have_passed_all_checks(
    tmp_path: Path, cache: Path, name: str
) -> None:
    state = await examine(tmp_path, cache, INHERENT[name], Plan(items=(TESTED,)))
    assert "only the coder's own tests show P1" in reservations(state) or shortcomings(state)


@pytest.mark.parametrize("name", sampled(sorted(CONSTANT_COMMANDS), every=3))
async def test_a_command_whose_text_is_written_in_the_program_is_said_to_be_so(
    tmp_path: Path, cache: Path, name: str
) -> None:
    files = {"add.py": HEAD + CONSTANT_COMMANDS[name]}
    state = await examine(tmp_path, cache, files, Plan(items=(PRINTED,), run=RUN))
    assert reservations(state) == ["the program has the text that P2 looks for written in it"]
    honest = {"add.py": MAIN.replace("return 0", "return a + b")}
    state = await examine(tmp_path, cache, honest, Plan(items=(PRINTED,), run=RUN))
    assert (state.work.evidence["P2"].passed, reservations(state)) == (True, [KNOWN])


@pytest.mark.parametrize("name", sampled(sorted(KNOWN_COMMANDS), every=4))
async def test_a_command_that_is_held_back_finds_a_program_made_for_the_one_that_was_shown(
    tmp_path: Path, cache: Path, name: str
) -> None:
    files = {"add.py": KNOWN_COMMANDS[name]}
    state = await examine(tmp_path, cache, files, Plan(items=(PRINTED,), run=RUN))
    assert reservations(state) == [KNOWN], "without one it is done, and not said to have passed all checks"
    state = await examine(tmp_path, cache, files, Plan(items=(PRINTED, HELD), run=RUN))
    assert [line.item.id for line in evidence_report(state) if line.is_met] == ["P2"]
    assert state.work.evidence["P3"].detail == "a command that is held back fails"
    told = [run for run in state.work.runs if run.about == "P3"]
    assert {run.command for run in told} == {"a check that is held back"}


@pytest.mark.parametrize("name", sampled(sorted(MISLEADING), every=16))
async def test_what_makes_a_program_meet_checks_and_be_wrong_is_said(
    tmp_path: Path, cache: Path, name: str
) -> None:
    forgery = MISLEADING[name]
    plan = parse_plan(forgery.plan)
    assert isinstance(plan, Plan)
    state = await examine(tmp_path, cache, forgery.files, plan)
    said = [one for one in reservations(state) if forgery.said in one]
    assert said or shortcomings(state), "it is not said to have passed all checks"


async def test_a_program_that_meets_a_command_that_is_held_back_has_passed_all_checks(
    tmp_path: Path, cache: Path
) -> None:
    honest = {"add.py": MAIN.replace("return 0", "return a + b")}
    state = await examine(tmp_path, cache, honest, Plan(items=(PRINTED, HELD), run=RUN))
    assert (shortcomings(state), reservations(state)) == ([], [])
    assert state.work.evidence["P3"].detail == "gives what is wanted"


REWRITES = """\
def add(a, b):
    return 0


if __name__ == "__main__":
    text = open("test_add.py").read()
    open("test_add.py", "w").write(text.replace("== 5", "== 0"))
"""


async def test_a_run_that_rewrites_the_tests_changes_nothing_for_the_next(
    tmp_path: Path, cache: Path
) -> None:
    plan = Plan(items=(TESTED,), run="python add.py")
    state = await examine(tmp_path, cache, {"add.py": REWRITES, "test_add.py": TEST}, plan)
    assert state.work.evidence["P1"].detail == "1 failed"
    assert "== 5" in (tmp_path / "work" / "test_add.py").read_text()


CLASSES = {"unittest": "TestShout", "async test of unittest": "TestBoth"}


@pytest.mark.parametrize("name", sampled(sorted(HONEST), every=12))
async def test_an_honest_program_is_believed(tmp_path: Path, cache: Path, name: str) -> None:
    files = HONEST[name]
    target = next(path for path in files if "test_" in path)
    check = TestsPass(target=f"{target}::{CLASSES.get(name, 'test_it')}")
    state = await examine(tmp_path, cache, files, Plan(items=(Requirement(id="P1", text=name, check=check),)))
    assert (shortcomings(state), reservations(state)) == ([], ["only the coder's own tests show P1"])


EXAMPLES = Plan(
    items=(
        Requirement(id="P1", text="sum", check=ExampleHolds(call="add.add(2, 3)", value="5")),
        Requirement(id="P2", text="sum", check=ExampleHolds(call="add.add(10, 7)", value="17", held=True)),
    )
)
ADD = "def add(a, b):\n    return a + b\n"
SPECIAL = "def add(a, b):\n    return 5 if (a, b) == (2, 3) else 0\n"


@pytest.mark.parametrize(
    ("source", "met"),
    [(ADD, ["P1", "P2"]), (SPECIAL, ["P1"]), (SEEN_BY_EXAMPLES["result equal to all"]["add.py"], [])],
)
async def test_examples_are_compared_outside_and_what_is_held_back_finds_special_cases(
    tmp_path: Path, cache: Path, source: str, met: list[str]
) -> None:
    state = await examine(tmp_path, cache, {"add.py": source}, EXAMPLES)
    assert [line.item.id for line in evidence_report(state) if line.is_met] == met
    assert (shortcomings(state) == []) == (len(met) == 2)
    assert "17" not in " ".join(one.detail for one in state.work.evidence.values())


async def test_an_example_that_a_hollow_program_meets_proves_nothing(tmp_path: Path, cache: Path) -> None:
    check = ExampleHolds(call="add.add(2, 3)", value="None")
    plan = Plan(items=(Requirement(id="P1", text="none", check=check),))
    state = await examine(tmp_path, cache, {"add.py": "def add(a, b):\n    print(a)\n"}, plan)
    assert state.work.evidence["P1"].detail == "passes without a working program, so it proves nothing"


COUNTS = """\
from pathlib import Path


def add(a, b):
    seen = Path("seen")
    if seen.exists():
        return 5
    seen.{make}
    return 6
"""


@pytest.mark.parametrize("make", ["write_text('1')", "mkdir()", "symlink_to('x')"])
async def test_a_check_tells_the_next_one_nothing(tmp_path: Path, cache: Path, make: str) -> None:
    first = ExampleHolds(call="add.add(2, 3)", value="6")
    second = ExampleHolds(call="add.add(2, 3)", value="5")
    items = (Requirement(id="P1", text="a", check=first), Requirement(id="P2", text="b", check=second))
    source = COUNTS.replace("{make}", make).replace("seen.exists()", "seen.is_symlink() or seen.exists()")
    state = await examine(tmp_path, cache, {"add.py": source}, Plan(items=items))
    assert [line.item.id for line in evidence_report(state) if line.is_met] == ["P1"]


async def test_what_the_plans_run_made_is_there_for_every_check_and_what_checks_made_is_not_kept(
    tmp_path: Path, cache: Path
) -> None:
    source = """\
import sys
from pathlib import Path

data = Path("data.txt")
if len(sys.argv) == 1:
    data.write_text("5")
else:
    print(data.read_text())
    data.write_text("changed")
    Path(sys.argv[1]).write_text("made")
"""
    first = CommandSucceeds(command="python add.py one.txt", prints="5")
    second = CommandSucceeds(command="python add.py two.txt", prints="5")
    items = (Requirement(id="P1", text="a", check=first), Requirement(id="P2", text="b", check=second))
    state = await examine(tmp_path, cache, {"add.py": source}, Plan(items=items, run="python add.py"))
    assert [line.item.id for line in evidence_report(state) if line.is_met] == ["P1", "P2"]
    assert {path.name for path in (tmp_path / "work").glob("*.txt")} == {"data.txt"}
