"""No key, no server, a person at a terminal: four ways to go on. And one line where nobody is there."""

from pathlib import Path

import msgspec
import pytest
from cli.commands import SMALL, Septet
from cli.terminals import needs_terminal, on_terminal

from septet.models.local.catalogue import CATALOGUE

ROOT = Path(__file__).parents[2]
GOAL = "an analog clock"
ALONE = {"OLLAMA_HOST": "127.0.0.1:9", "NO_PROXY": "*"}
"""Port 9 answers nobody; the other servers' ports are looked at as they are."""


def test_without_a_terminal_it_is_one_line_and_nothing_is_written(septet: Septet) -> None:
    failed = septet("run", GOAL)
    assert failed.returncode == 5
    assert len(failed.stderr.strip().splitlines()) == 1
    assert "OPENAI_API_KEY" in failed.stderr
    assert "septet models get" in failed.stderr
    assert not septet.home.exists()


@needs_terminal
@pytest.mark.torture
def test_the_first_way_is_to_watch_a_demo_of_the_same_kind(septet: Septet) -> None:
    with on_terminal(septet, "run", GOAL, environment=ALONE) as terminal:
        screen = terminal.wait_for("download the built-in model, 1.1 GB")
        assert "enter an API key" in screen
        terminal.type("1")
        terminal.wait_for("a demo: the members' answers were written beforehand")
        screen = terminal.wait_for("exit code")
    assert "clock-" in screen
    assert "done; only the coder's own tests show P1" in screen
    assert "exit code 0" in screen


@needs_terminal
def test_the_second_way_is_a_key_which_is_kept_and_not_shown(septet: Septet) -> None:
    with on_terminal(
        septet, "run", GOAL, environment=ALONE | {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    ) as terminal:
        terminal.wait_for("Ctrl-C quits.\n>")
        terminal.type("2")
        terminal.wait_for("(openai or anthropic):")
        terminal.type("antropic")
        terminal.wait_for("please type openai or anthropic")
        terminal.type("anthropic")
        terminal.wait_for("key:")
        terminal.type("sk-very-secret-4711")
        screen = terminal.wait_for("using anthropic/")
    assert "a key for anthropic is stored" in screen
    assert "4711" not in screen
    assert (septet.home / "config" / "keys.json").stat().st_mode & 0o777 == 0o600


@needs_terminal
@pytest.mark.parametrize("wish", ["", "no"])
def test_whoever_wants_none_of_them_is_let_go(septet: Septet, wish: str) -> None:
    with on_terminal(septet, "run", GOAL, environment=ALONE) as terminal:
        terminal.wait_for("Ctrl-C quits.\n>")
        terminal.type("3")
        terminal.wait_for("look again for a model server", times=2)
        terminal.wait_for("Ctrl-C quits.\n>", times=2)
        terminal.type(wish)
        screen = terminal.wait_for("exit code")
    assert "no model was chosen: septet demo" in screen
    assert "exit code 5" in screen


@pytest.fixture
def far(septet: Septet) -> Septet:
    """Where the embedded model can be asked for and not be had: nothing is downloaded by a test."""
    entry = {
        "name": CATALOGUE[0].name,
        "title": "the embedded one",
        "licence": "MIT",
        "size": 5,
        "sha256": "0" * 64,
        "sources": [{"type": "hub", "url": "http://127.0.0.1:9/model.gguf"}],
    }
    (septet.home / "config").mkdir(parents=True)
    (septet.home / "config" / "models.yaml").write_bytes(msgspec.json.encode({"weights": [entry]}))
    septet.environment |= ALONE
    return septet


def test_yes_alone_fetches_nothing_and_says_what_does(far: Septet) -> None:
    failed = far("run", GOAL, "--yes")
    assert failed.returncode == 5
    (line,) = failed.stderr.strip().splitlines()
    assert "--fetch" in line
    assert "1.1 GB" in line
    assert not (far.home / "cache").exists()


@pytest.mark.parametrize(
    ("args", "environment"),
    [
        (["--fetch"], {}),
        (["--yes"], {"SEPTET_MODEL": "local"}),
        (["--yes"], {"SEPTET_QUICKSTART": "1"}),
    ],
    ids=["asked for", "named", "./run"],
)
def test_who_asks_for_the_embedded_model_gets_it_fetched(
    far: Septet, args: list[str], environment: dict[str, str]
) -> None:
    tried = far("run", GOAL, *args, environment=environment)
    assert tried.returncode == 75, tried.stderr
    assert "septet: fetching the embedded one" in tried.stderr


def test_the_checkouts_own_command_says_that_it_may_fetch() -> None:
    assert 'export SEPTET_QUICKSTART="$here"' in (ROOT / "run").read_text()
    assert "--fetch" in (ROOT / "README.md").read_text()


def test_in_the_checkout_of_run_a_program_gets_a_new_folder(septet: Septet, tmp_path: Path) -> None:
    """The first line of the README, typed in a fresh clone, must not work on Septet's own thousand files."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'septet'\n")
    septet.environment["SEPTET_QUICKSTART"] = str(tmp_path)
    done = septet("run", "add two numbers", "-m", SMALL, "--yes", "-n", "adding")
    assert done.returncode == 0, done.stderr
    assert "this is Septet's own checkout: the program gets a new folder" in done.stderr
    assert (septet.home / "work" / "adding" / "add.py").exists()
    assert not (tmp_path / "add.py").exists()
