"""Folders for control runs: which part of a version they have, and which controls change something."""

import pytest

from septet.agents.control_folders import part_of_version, possible_controls
from septet.domain.events import RunStarted
from septet.domain.runs import HOLLOW

PROGRAM, TEST = "add.py", "test_add.py"


@pytest.mark.parametrize(
    ("purpose", "about", "taken"),
    [
        ("baseline", "", []),
        ("tests again", "base", []),
        ("tests again", "base 2", []),
        ("tests again", "now", [PROGRAM, TEST]),
        ("tests again", "found", [PROGRAM]),
        ("tests as found", "", [PROGRAM]),
        ("tests on base", "", [TEST]),
        ("check on base", "P1", [TEST]),
    ],
)
def test_a_run_over_the_base_takes_its_part_of_the_version(
    purpose: str, about: str, taken: list[str]
) -> None:
    started = RunStarted(id="x", purpose=purpose, about=about, command="x", tree="")  # pyright: ignore[reportArgumentType]  # one of the purposes
    takes = part_of_version(started)
    assert takes is not None
    assert [path for path in (PROGRAM, TEST) if takes(path)] == taken


@pytest.mark.parametrize(
    ("purpose", "about"), [("run", ""), ("tests", ""), ("tests again", "other"), ("check", "P1")]
)
def test_any_other_run_is_in_the_workspace(purpose: str, about: str) -> None:
    started = RunStarted(id="x", purpose=purpose, about=about, command="x", tree="")  # pyright: ignore[reportArgumentType]  # as above
    assert part_of_version(started) is None


def test_only_controls_that_change_something_are_possible() -> None:
    assert possible_controls({}) == []
    assert possible_controls({"a.txt": "x"}) == []
    found = possible_controls({"a.py": "def add(a, b):\n    if a > b:\n        return a + b\n    return 1\n"})
    assert found[0] == HOLLOW
    assert len(found) > 1
