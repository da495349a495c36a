"""What the README shows is run: its team file, its Python, its model (its commands: `test_snippets.py`)."""

import re
import subprocess
import sys
from pathlib import Path

from cli.commands import PATIENCE, Septet

from septet.settings.team_files import load_team

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README.read_text(), re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCKS if found == language]


def test_the_team_file_is_a_team(tmp_path: Path) -> None:
    (text,) = blocks("yaml")
    (tmp_path / "team.yaml").write_text(text)
    team = load_team(str(tmp_path / "team.yaml"))
    assert [member.name for member in team.members] == ["planner", "proxy", "ada", "runner", "reviewer"]


def test_the_python_examples_run(tmp_path: Path) -> None:
    use, tool, model = blocks("python")
    septet = Septet(tmp_path / "home")
    done = subprocess.run(
        [sys.executable, "-c", use],
        env=septet.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "done" in done.stdout.splitlines()[-1]
    subprocess.run([sys.executable, "-c", tool], env=septet.environment, check=True, timeout=PATIENCE)
    subprocess.run([sys.executable, "-c", model], env=septet.environment, check=True, timeout=PATIENCE)
