"""Which checks of a plan cannot run in a project, found out while the plan can still be changed."""

from pathlib import Path

import pytest

from septet.agents.plan_probe import first_words, missing_files, split_command
from septet.workspace.files import Workspace

pytestmark = pytest.mark.anyio


def test_the_program_of_each_command_is_asked_for_once_and_paths_are_the_projects() -> None:
    commands = [
        "A=1 B=2 make test",
        "make all",
        "./run.sh x",
        "bin/tool",
        "python -m x",
        "g++ a.cc",
        "A=1",
        "",
        "echo 'open",
        "'two words' x",
    ]
    assert first_words(commands) == ["make", "python", "g++"]
    assert split_command("a 'b c'") == ["a", "b c"]
    assert split_command("a 'b") == []


async def test_a_test_that_is_to_be_mended_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("")
    targets = ["test_a.py::test_x", "test_b.py::test_x", "test_b.py", "npm test", "tests"]
    assert await missing_files(Workspace(tmp_path), targets) == ["test_b.py"]
