"""The ladder for a coder that is stuck: an example, a stronger model, then a stop with the reason."""

from pathlib import Path

import yaml
from cli.commands import Septet

TEST = 'from total import total\n\n\ndef test_total():\n    assert total(["1,200", "3"]) == 1203\n'
PLAN = "1. total reads amounts as people write them\n   check: tests test_total.py::test_total\n"
REVISE = "verdict: revise\n- [must] P1 (test_total.py::test_total): it does not read 1,200\n"
RIGHT = "def total(texts):\n    return sum(float(text.replace(',', '')) for text in texts)\n"


def wrong(number: int) -> dict[str, object]:
    code = f"def total(texts):\n    return sum(float(text) for text in texts)  # try {number}\n"
    return {"role": "coder", "say": "F1: fixed.", "files": {"total.py": code, "test_total.py": TEST}}


def prepared(folder: Path, stronger: str) -> list[str]:
    """A team whose coder fails in the same way for ever, and perhaps a stronger model that does not."""
    turns = [{"role": "planner", "say": PLAN}]
    for number in range(1, 7):
        turns += [wrong(number), {"role": "reviewer", "say": REVISE}]
    (folder / "weak.yaml").write_text(yaml.safe_dump({"turns": turns}))
    strong = {"role": "coder", "step": 4, "say": "F1: fixed.", "files": {"total.py": RIGHT}}
    (folder / "strong.yaml").write_text(yaml.safe_dump({"turns": [strong]}))
    coder = {"role": "coder", **({"stronger": f"scripted:{folder / stronger}"} if stronger else {})}
    others = [{"role": role} for role in ("planner", "proxy", "runner", "reviewer", "exemplar")]
    (folder / "team.yaml").write_text(yaml.safe_dump({"members": [*others, coder]}))
    return ["run", "totals", "-t", "team.yaml", "-m", "scripted:weak.yaml", "--yes", "-n", "totals"]


def test_a_stronger_model_takes_over_when_the_same_failure_comes_again(
    septet: Septet, tmp_path: Path
) -> None:
    run = prepared(tmp_path, "strong.yaml")
    done = septet(*run)
    log = septet("export", "totals", "--format", "jsonl").stdout
    assert '"model":"scripted:strong"' in log, done.stderr
    assert "exemplar  no example" in done.stderr
    assert log.count('"model":"scripted:weak"') > log.count('"model":"scripted:strong"')
    assert "version 4" in done.stderr
    assert "✓ tests → " in done.stderr


def test_what_does_not_get_better_stops_with_the_failure_named(septet: Septet, tmp_path: Path) -> None:
    stopped = septet(*prepared(tmp_path, ""))
    assert stopped.returncode == 3, stopped.stderr
    assert (
        "no progress (the same failure came 5 times in a row: ValueError: could not convert" in stopped.stdout
    )
