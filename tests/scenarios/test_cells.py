"""The pair with a kernel: what one step defined the next one has, after a crash and after kill -9 too."""

from pathlib import Path

from cli.commands import SCRIPTS, Septet

from septet.domain.codec import decode
from septet.domain.events import RunFinished

RUN = ["run", "sum of 1 to 10", "-t", "pair", "--run-as", "cells", "-C", "w", "-n", "sum", "--json"]
MODEL = ["-m", f"scripted:{SCRIPTS / 'cells.yaml'}"]


def runs(log: str) -> list[tuple[str, int]]:
    """Mode and exit code of every run."""
    events = [decode(line).event for line in log.splitlines()[:-1]]
    return [(event.mode, event.result.exit_code) for event in events if isinstance(event, RunFinished)]


def test_steps_share_a_kernel_that_survives_its_own_death(septet: Septet, tmp_path: Path) -> None:
    done = septet(*RUN, *MODEL)
    assert done.returncode == 3, done.stderr
    assert runs(done.stdout) == [
        ("cell", 0),
        ("cell", 1),
        ("cell", 137),
        ("cell", 0),
        ("cell", 0),
        ("cell", 0),
    ]
    assert (tmp_path / "w" / "sum.txt").read_text() == "55\n"
    cells = (tmp_path / "w" / "cells.py").read_text()
    assert cells.count("# %%") == 4
    assert "nubmers" not in cells
    (tmp_path / "w" / "sum.txt").unlink()
    again = septet("exec", "-C", "w", "--kernel", "cells.py")
    assert (again.returncode, (tmp_path / "w" / "sum.txt").read_text()) == (0, "55\n"), again.stderr


def test_after_kill_9_the_state_is_rebuilt_from_the_log(septet: Septet, tmp_path: Path) -> None:
    septet.killed(*RUN, *MODEL, at="septet.run_finished", times=4)
    resumed = septet("resume", "sum", "-q")
    assert resumed.returncode == 3, resumed.stderr
    assert (tmp_path / "w" / "sum.txt").read_text() == "55\n"
    assert (tmp_path / "w" / "cells.py").read_text().count("# %%") == 4
