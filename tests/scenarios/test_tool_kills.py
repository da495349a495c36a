"""kill -9 after a tool's intent was stored and before its effect: resumed, every tool does what it would have done."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from cli.commands import PATIENCE, Septet
from sampling import sampled
from scenarios.assistant.scripts import calls, says, write

from septet.domain.codec import decode
from septet.domain.events import FactsChanged, ModelAnswered, ToolAnswered, ToolCalled

TEAM = """name: tooled
members:
  - {name: proxy, role: proxy}
  - {name: planner, role: planner, form: tools}
  - {name: coder, role: coder, form: tools}
  - {name: runner, role: runner}
  - {name: reviewer, role: reviewer, form: tools}
"""
FILES = {
    "add.py": "def add(a, b):\n    return a - b\n",
    "old.py": "x = 1\n",
    "README.md": "# Add\n",
}
TEST = "from add import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n    assert add(1, 1) == 2\n"
CALLS: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("list_files", {}),
    ("search", {"pattern": "return"}),
    ("outline", {"path": "add.py"}),
    ("read", {"path": "add.py"}),
    ("edit", {"edits": [{"path": "add.py", "old": "a - b", "new": "a + b"}]}),
    ("write", {"path": "test_add.py", "text": TEST}),
    ("delete", {"paths": ["old.py"]}),
    ("run", {"command": "python -m pytest -q"}),
    ("ask", {"question": "Is that all?"}),
    ("check", {"ready": True}),
)
RUN = ("run", "add adds", "--yes", "--json", "-n", "c")


class Traces(NamedTuple):
    """What the chat leaves: the model's answers, what is remembered, what came of each call, and the files."""

    said: list[str]
    facts: list[tuple[str, tuple[str, ...]]]
    answered: list[tuple[str, str, bool]]
    files: dict[str, str]


def begin(folder: Path) -> tuple[Septet, tuple[str, ...]]:
    """A repository to work in, and the command."""
    folder.mkdir(exist_ok=True)
    (folder / "project").mkdir()
    for path, text in FILES.items():
        (folder / "project" / path).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=folder / "project", check=True)
    (folder / "team.yaml").write_text(TEAM)
    plan = "1. add adds\n   check: example add.add(2, 3) => 5\n   check: held add.add(4, 4) => 8\n"
    model = write(
        folder / "script.yaml",
        says("planner", plan),
        says("planner", "Yes."),
        calls("coder", *CALLS),
        says("reviewer", "verdict: accept\nremember: sums are whole"),
    )
    settings = ("-t", str(folder / "team.yaml"), "-m", model, "-C", str(folder / "project"))
    return Septet(folder / "home"), (*RUN, *settings)


def traces(septet: Septet, folder: Path) -> Traces:
    log = [decode(line).event for line in septet("export", "c", "--format", "jsonl").stdout.splitlines()]
    said = [event.answer.text for event in log if isinstance(event, ModelAnswered)]
    answered = [(one.id, one.summary, one.failed) for one in log if isinstance(one, ToolAnswered)]
    paths = [path for path in (folder / "project").rglob("*") if path.is_file() and ".git" not in path.parts]
    facts = [(one.by, one.change.add) for one in log if isinstance(one, FactsChanged)]
    return Traces(said, facts, answered, {path.name: path.read_text() for path in paths})


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    folder = tmp_path_factory.mktemp("uninterrupted")
    septet, command = begin(folder)
    done = septet(*command)
    assert done.returncode == 0, done.stderr
    found = traces(septet, folder)
    assert [number for number, _, failed in found.answered if not failed] == [
        f"3.1.{n}" for n in range(1, 11)
    ]
    assert found.facts == [("reviewer", ("sums are whole",))]
    assert sorted(found.files) == ["README.md", "add.py", "test_add.py"]
    return found


@pytest.mark.parametrize("tool", sampled([name for name, _ in CALLS], every=8))
def test_a_kill_between_intent_and_effect_changes_nothing(
    tmp_path: Path, uninterrupted: Traces, tool: str
) -> None:
    septet, command = begin(tmp_path / "killed")
    process = septet.start(*command)
    assert process.stdout is not None
    for line in process.stdout:
        event = decode(line).event
        if isinstance(event, ToolCalled) and event.name == tool:
            break
    process.kill()
    process.communicate(timeout=PATIENCE)
    resumed = septet("resume", "c", "-q")
    assert resumed.returncode == 0, resumed.stderr
    assert traces(septet, tmp_path / "killed") == uninterrupted
