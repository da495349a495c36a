"""Examples that are held back: the person sees them, those who write the program do not, and they are run."""

from pathlib import Path

import msgspec
import yaml
from cli.commands import Septet

from septet.domain.codec import decode
from septet.domain.events import EvidenceFound

PLAN = """\
1. double gives twice the number
   check: example app.double(2) => 4
   check: held app.double(21) => 42
"""
SPECIAL = "def double(n):\n    return 4\n"
RIGHT = "def double(n):\n    return 2 * n\n"
REVISE = "verdict: revise\n- [must] P2: it is right for one number only\n"


def script(folder: Path) -> str:
    turns = [
        {"role": "planner", "say": PLAN},
        {"role": "coder", "say": "Done.", "files": {"app.py": SPECIAL}},
        {"role": "reviewer", "say": REVISE},
        {
            "role": "coder",
            "expect": "an example that is held back fails",
            "say": "F1: fixed, twice.",
            "files": {"app.py": RIGHT},
        },
        {"role": "reviewer", "say": "verdict: accept\n"},
    ]
    path = folder / "script.yaml"
    path.write_text(yaml.safe_dump({"turns": turns}))
    return f"scripted:{path}"


def test_a_program_that_knows_the_shown_example_only_is_not_done(septet: Septet, tmp_path: Path) -> None:
    run = septet(
        "run",
        "double",
        "-m",
        script(tmp_path),
        "--yes",
        "--json",
        "-n",
        "double",
        "-C",
        "w",
        "--debug",
    )
    assert run.returncode == 0, run.stderr
    *lines, last = run.stdout.splitlines()
    found = [one for one in (decode(line).event for line in lines) if isinstance(one, EvidenceFound)]
    told = [(one.item, one.passed, one.detail) for one in found]
    assert told == [
        ("P1", True, "gives the value"),
        ("P2", False, "an example that is held back fails"),
        ("P1", True, "gives the value"),
        ("P2", True, "gives the value"),
    ]
    assert msgspec.json.decode(last)["versions"] == 2
    kept = (tmp_path / "w" / "MasterPlan.txt").read_text()
    assert "check P2: held back" in kept
    assert "42" not in kept
    assert "held app.double(21) => 42" in septet("show", "double").stdout
    asked = (septet.home / "logs" / "double.log").read_text()
    writers = asked[asked.index("[coder 1, system]") :]
    assert "double(2) => 4" in writers
    assert "21" not in writers
    assert "42" not in writers
