"""What the README shows is run: its commands, its team file, its Python, its model."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli.commands import PATIENCE, SMALL, Septet

from septet.settings.team_files import load_team

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README.read_text(), re.DOTALL)
NEEDS_PERSON = 4


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCKS if found == language]


def commands() -> list[str]:
    lines = [line.split(" #")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    return [line for line in lines if line.startswith("septet ")]


@pytest.fixture(scope="module")
def septet(tmp_path_factory: pytest.TempPathFactory) -> Septet:
    """A home with a chat that waits for its person, and with a model that knows what to say."""
    septet = Septet(tmp_path_factory.mktemp("readme") / "home")
    septet.environment["SEPTET_MODEL"] = SMALL
    assert septet("run", "add", "-n", "adding").returncode == NEEDS_PERSON
    return septet


@pytest.mark.parametrize("line", commands())
def test_every_command_works(septet: Septet, line: str) -> None:
    import shlex

    args = shlex.split(line.replace("NAME", "adding"))[1:]
    expected = NEEDS_PERSON if args == ["an analog clock"] else 0
    done = septet(*args)
    assert done.returncode == expected, done.stderr


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
