"""Fixed runs take what they took: counts that are the same on a busy machine."""

import json
from pathlib import Path

import pytest
from counts import KEPT, RUNS, Counts, count_all, grown


@pytest.fixture(scope="module")
def kept() -> dict[str, Counts]:
    return json.loads(KEPT.read_text(encoding="utf-8"))


def test_no_count_has_grown_by_more_than_a_tenth(kept: dict[str, Counts]) -> None:
    """What grew on purpose is kept anew with `python scripts/counts.py --write`."""
    assert list(kept) == list(RUNS)
    assert list(grown(kept, count_all())) == []


PLANTS = {
    "modules": ("septet --help", "import json.tool, rich.console"),
    "statements": (
        "a talk",
        """
from septet.stores.sqlite import RowWriter, read_events

insert = RowWriter._insert
RowWriter._insert = lambda self, new: (read_events(self.connection, new.chat, 0), insert(self, new))[1]
""",
    ),
    "processes": (
        "a talk",
        """
import subprocess
from septet.wiring.session import Session

conduct = Session.conduct
Session.conduct = lambda *given: [subprocess.run(["true"]) for _ in range(4)] and conduct(*given)
""",
    ),
}
"""The count that must show a regression: the run, and the code that makes it worse."""


@pytest.mark.parametrize("what", PLANTS)
def test_a_planted_regression_is_noticed(what: str, kept: dict[str, Counts], tmp_path: Path) -> None:
    run, code = PLANTS[what]
    plant = tmp_path / "planted.py"
    plant.write_text(code, encoding="utf-8")
    assert any(line.startswith(f"{run}: {what}: ") for line in grown(kept, count_all((run,), plant)))
