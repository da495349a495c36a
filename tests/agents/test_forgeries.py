"""No forgery is taken for evidence, and honest programs of every kind are."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from agents.evidence_runs import examine
from agents.forgeries import FORGERIES, RUN
from agents.honest_programs import HONEST

from septet.domain.plans import CommandSucceeds, Plan, Requirement, TestsPass
from septet.team.evidence import shortcomings

pytestmark = pytest.mark.anyio
TESTED = Requirement(id="P1", text="add gives the sum", check=TestsPass(target="test_add.py::test_sum"))
PRINTED = Requirement(id="P2", text="it prints the sum", check=CommandSucceeds(command=RUN, prints="5"))


SAMPLE = 4
"""One in so many is looked at in every run of the tests, the others in `just torture`."""


def sampled(names: Iterable[str]) -> list[object]:
    rest = (pytest.mark.torture,)
    return [
        pytest.param(name, marks=rest if number % SAMPLE else ()) for number, name in enumerate(sorted(names))
    ]


@pytest.mark.parametrize("name", sampled(FORGERIES))
async def test_a_forgery_is_not_taken_for_evidence(tmp_path: Path, cache: Path, name: str) -> None:
    state = await examine(tmp_path, cache, FORGERIES[name], Plan(items=(TESTED,)))
    assert shortcomings(state)
    state = await examine(tmp_path, cache, FORGERIES[name], Plan(items=(TESTED, PRINTED), run=RUN))
    assert shortcomings(state)


@pytest.mark.parametrize("name", sampled(HONEST))
async def test_an_honest_program_is_believed(tmp_path: Path, cache: Path, name: str) -> None:
    files = HONEST[name]
    target = next(path for path in files if "test_" in path)
    check = TestsPass(target=f"{target}::TestShout" if name == "unittest" else f"{target}::test_it")
    state = await examine(tmp_path, cache, files, Plan(items=(Requirement(id="P1", text=name, check=check),)))
    assert shortcomings(state) == []
