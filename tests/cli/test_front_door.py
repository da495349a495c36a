"""What a newcomer meets first: login, init, trust, resume without a name, a model for a whole team, step mode."""

from functools import partial
from pathlib import Path

import anyio
import pytest
from cli.commands import SMALL, Septet
from cli.terminals import needs_terminal, on_terminal

from septet.cli.completion import team_names, version_names
from septet.cli.options import model_names
from septet.testing.replies import ReceivedRequest, Reply
from septet.testing.server import serve_mock

SECRET = "sk-good-4711"


def never_asked(_: ReceivedRequest) -> Reply:
    raise AssertionError("no model is asked")


async def login(septet: Septet, key: str, wanted: str) -> tuple[int, str]:
    """Type the key at a provider that accepts one key only."""
    async with serve_mock(never_asked, key=wanted) as server:
        base = {"OPENAI_BASE_URL": f"{server.url}/v1"}

        def typed() -> tuple[int, str]:
            done = septet("login", "openai", stdin=f"{key}\n", environment=base)
            return done.returncode, done.stderr

        return await anyio.to_thread.run_sync(typed)


@pytest.mark.anyio
async def test_login_stores_only_a_key_that_the_provider_accepts(septet: Septet) -> None:
    code, told = await login(septet, "sk-wrong", SECRET)
    assert (code, told.count("\n")) == (5, 1)
    assert "openai refused the key" in told
    assert "nothing was stored" in told
    assert not (septet.home / "config" / "keys.json").exists()
    code, told = await login(septet, SECRET, SECRET)
    file = septet.home / "config" / "keys.json"
    assert code == 0
    assert told == f"septet: stored the key of openai in {file}, readable only by you; openai accepts it\n"
    assert SECRET in file.read_text()


def test_login_says_when_nobody_could_be_asked(septet: Septet) -> None:
    nowhere = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    done = septet("login", "openai", stdin=f"{SECRET}\n", environment=nowhere)
    assert done.returncode == 0
    assert "not checked (no connection to 127.0.0.1:9)" in done.stderr


def test_init_checks_the_machine_and_says_how_to_get_a_model(septet: Septet) -> None:
    without = septet("init")
    assert without.returncode == 5
    assert "✓ sandbox" in without.stderr
    assert without.stderr.splitlines()[-1].startswith("septet: no model was found")
    ready = septet("init", environment={"OPENAI_API_KEY": SECRET})
    assert ready.returncode == 0, ready.stderr
    assert "ready with openai/" in ready.stderr


def test_a_model_on_the_command_line_overrides_those_of_a_team_file(septet: Septet, tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text("members: [{role: planner, model: openai/gpt-5}]\nfloor: plan\n")
    done = septet("run", "add", "-t", "team.yaml", "-m", SMALL, "--yes", "-q")
    assert done.returncode == 0, done.stderr


@pytest.mark.anyio
async def test_a_start_that_fails_by_a_setting_leaves_no_chat(septet: Septet) -> None:
    async with serve_mock(never_asked, key=SECRET) as server:
        wrong = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "sk-wrong"}
        run = partial(septet, "run", "add two numbers", "-m", "openai/m", "--yes", environment=wrong)
        failed = await anyio.to_thread.run_sync(run)
    assert failed.returncode == 5, failed.stderr
    assert "Incorrect API key provided: set a valid key: septet login" in failed.stderr
    assert septet("list").stdout == ""
    assert not list((septet.home / "work").glob("*"))


def test_resume_without_a_name_takes_the_only_unfinished_chat_and_asks_about_several(septet: Septet) -> None:
    for name in ("first", "second"):
        assert septet("run", "add two numbers", "-m", SMALL, "-q", "-n", name).returncode == 4
    several = septet("resume")
    assert several.returncode == 2
    assert several.stderr == "septet: 2 chats are unfinished (second, first): name one, or add --last\n"
    assert septet("resume", "--last", "sounds good", "-q").returncode == 0
    assert septet("resume").returncode == 4, "first is the only one, and waits for an approval"


@needs_terminal
def test_at_a_terminal_the_unfinished_chats_are_offered(septet: Septet) -> None:
    for name in ("first", "second"):
        septet("run", "add two numbers", "-m", SMALL, "-q", "-n", name)
    with on_terminal(septet, "resume") as terminal:
        assert "1  second" in terminal.wait_for("which one?")
        terminal.type("7")
        terminal.wait_for("please type a number from 1 to 2")
        terminal.type("2")
        terminal.wait_for("first: add two numbers")


def test_a_trusted_folder_is_listed_and_forgotten(septet: Septet, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    assert "without a question" in septet("trust", str(folder)).stderr
    assert septet("trust", "--list").stdout == f"{folder}\n"
    assert septet("trust", str(folder), "--remove").returncode == 0
    assert septet("trust", "--list").stdout == ""


def test_teams_and_models_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import click

    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").touch()
    context, parameter = click.Context(click.Command("run")), click.Option(["--x"])
    assert team_names(context, parameter, "it") == ["iterate"]
    assert team_names(context, parameter, "mi") == ["mine.yaml"]
    assert "local/qwen2.5-coder-1.5b" in model_names(context, parameter, "local/q")
    assert "anthropic/" in model_names(context, parameter, "a")


def test_versions_of_the_named_chat_are_completed(adding: Septet, monkeypatch: pytest.MonkeyPatch) -> None:
    import click

    monkeypatch.setenv("SEPTET_HOME", str(adding.home))
    context = click.Context(click.Command("diff"))
    context.params["name"] = "adding"
    assert version_names(context, click.Option(["--x"]), "v") == ["v2", "v1"]
