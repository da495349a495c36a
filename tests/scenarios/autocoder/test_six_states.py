"""Whatever state a project is in, it ends green, and who was wrong is on record."""

import subprocess
import sys
from pathlib import Path

import pytest
from cli.commands import Septet, kinds
from sampling import sampled
from scenarios.autocoder.hello import CASES, fill, write_script

from septet.domain.codec import decode
from septet.domain.events import DecisionRecorded, SnapshotTaken, ToolAnswered, ToolCalled


@pytest.mark.parametrize("name", sampled(CASES, every=2))
def test_every_state_ends_green(septet: Septet, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    project = fill(tmp_path / "project", case.files)
    model = write_script(tmp_path / "script.yaml", case.steps)
    done = septet("run", "greet", "-t", "autocoder", "-m", model, "-C", str(project), "--json", "-n", "hello")
    assert done.returncode == 0, done.stderr
    events = [decode(line).event for line in done.stdout.splitlines()[:-1]]
    decisions = [event for event in events if isinstance(event, DecisionRecorded)]
    assert decisions[0].case == case.case
    assert decisions[-1].case == "green"
    assert case.decision in [decision.what for decision in decisions]
    assert all(decision.why for decision in decisions)
    assert len([event for event in events if isinstance(event, SnapshotTaken)]) == len(case.steps) + 1
    calls = [event for event in events if isinstance(event, ToolCalled)]
    answers = [event for event in events if isinstance(event, ToolAnswered)]
    assert [call.id for call in calls] == [answer.id for answer in answers]
    shown = subprocess.check_output([sys.executable, str(project / "main.py")], text=True)
    assert shown == "hello, world\n"


def test_no_model_is_asked_before_the_facts_are_in(septet: Septet, tmp_path: Path) -> None:
    case = CASES["wrong code"]
    project = fill(tmp_path / "project", case.files)
    model = write_script(tmp_path / "script.yaml", case.steps)
    done = septet("run", "greet", "-t", "autocoder", "-m", model, "-C", str(project), "--json")
    seen = kinds(done.stdout)
    act = seen.index("tool_called")
    before = seen[seen.index("plan_approved") : act]
    assert before.index("snapshot_taken") < before.index("run_finished") < before.index("decision_recorded")
    assert before.count("model_answered") == 1
    assert before[-1] == "model_answered"
