"""`list`, `show`, `diff`, `export`, `doctor`, `--help`: projections of the log, cheap and clean."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from cli.commands import SMALL, Septet, kinds

from septet.domain.codec import decode


@pytest.fixture
def septet(adding: Septet) -> Septet:
    return adding


@pytest.mark.torture
def test_list_says_where_each_chat_stands(septet: Septet) -> None:
    assert "adding" in septet("list").stdout
    assert "done; only the coder's own tests show P1" in septet("list").stdout
    (row,) = [msgspec.json.decode(line) for line in septet("list", "--json").stdout.splitlines()]
    assert (row["chat"], row["status"], row["versions"]) == ("adding", "done", 2)


def test_list_of_nothing_is_nothing_and_makes_nothing(tmp_path: Path) -> None:
    fresh = Septet(tmp_path / "home")
    listed = fresh("list")
    assert listed.stdout == ""
    assert "there are no chats yet: septet demo clock starts one" in listed.stderr
    assert fresh("list", "--json").stderr == ""
    assert not fresh.home.exists()


def test_show_is_the_chat_on_one_screen(septet: Septet) -> None:
    shown = septet("show", "add").stdout
    for part in ("goal: add two numbers", "v1", "v2", "✓  P1", "tests test_add.py::test_sum", "workspace:"):
        assert part in shown
    assert msgspec.json.decode(septet("show", "adding", "--json").stdout)["status"] == "done"


@pytest.mark.parametrize("args", [["list"], ["show", "adding"]], ids=["list", "show"])
def test_who_only_looks_starts_no_event_loop(septet: Septet, args: list[str]) -> None:
    """Importing one takes longer than all that these commands do."""
    program = "import sys; from septet.cli.main import septet; septet(sys.argv[1:], standalone_mode=False)"
    looked = subprocess.run(
        [sys.executable, "-c", f"{program}; assert 'asyncio' not in sys.modules", *args],
        env=septet.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert looked.returncode == 0, looked.stderr
    assert "adding" in looked.stdout


def test_diff_shows_the_fix(septet: Septet) -> None:
    for args in (["adding"], ["adding", "v1", "v2"], ["adding", "1"]):
        shown = septet("diff", *args).stdout
        assert "-    return a - b\n+    return a + b\n" in shown
    assert septet("diff", "adding", "v2", "v2").stdout == ""
    missing = septet("diff", "adding", "v1", "v9")
    assert (missing.returncode, missing.stderr) == (
        2,
        "septet: 'adding' has no version 'v9': it has v1 to v2\n",
    )


def test_the_exported_log_is_the_log(septet: Septet) -> None:
    log = septet("export", "adding", "--format", "jsonl").stdout
    assert [decode(line).seq for line in log.splitlines()] == list(range(1, len(log.splitlines()) + 1))
    assert (kinds(log)[0], kinds(log)[-1]) == ("chat_started", "chat_ended")


def test_the_exported_documents_read_well(septet: Septet) -> None:
    document = septet("export", "adding").stdout
    for part in ("# adding", "> add two numbers", "### coder", "### runner", "## Report", "✓  P1"):
        assert part in document
    history = septet("export", "adding", "--format", "txt").stdout
    assert "] coder:\nA first try.\n" in history
    assert history.index("verdict: revise") < history.index("it adds now.") < history.index("verdict: accept")


def test_doctor_tries_what_it_reports(septet: Septet) -> None:
    examined = septet("doctor")
    assert examined.returncode == 0, examined.stdout
    assert "✓ sandbox  bubblewrap" in examined.stdout
    rows = msgspec.json.decode(septet("doctor", "--json").stdout)
    assert {row["what"] for row in rows} >= {"python", "sandbox", "log", "home", "model", "git", "Xvfb", "uv"}
    weaker = septet("doctor", environment={"SEPTET_SANDBOX": "landlock"})
    assert weaker.returncode == 0, weaker.stdout
    assert "landlock; blocked: read a secret" in " ".join(weaker.stdout.split())
    assert "not blocked: write a git hook (this rung is weaker" in " ".join(weaker.stdout.split())


def test_doctor_and_models_name_the_model_of_the_variable(septet: Septet) -> None:
    chosen = septet("doctor", environment={"SEPTET_MODEL": SMALL}).stdout
    assert f"✓ model    {SMALL}: SEPTET_MODEL names it" in " ".join(chosen.splitlines())
    assert "SEPTET_MODEL names it" in septet("models", environment={"SEPTET_MODEL": SMALL}).stdout
    assert "SEPTET_MODEL names it" in septet("init", environment={"SEPTET_MODEL": SMALL}).stderr
    keyless = septet("doctor", environment={"SEPTET_MODEL": "openai/gpt-5"}).stdout
    assert "– model    there is no API key for openai" in keyless


LIGHT = """
import sys
sys.argv = ["septet", "--help"]
try:
    from septet.cli.main import main
    main()
except SystemExit:
    print(*sorted(sys.modules), file=sys.stderr)
"""


def test_help_loads_nothing_heavy() -> None:
    """The 100 ms bar is kept by what is loaded, not by a stop-watch; bench/startup.py has the figures."""
    shown = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert "septet resume" in shown.stdout
    loaded = set(shown.stderr.split())
    heavy = (
        "msgspec anyio asyncio rich yaml sqlite3 prompt_toolkit aiohttp httpx2 septet.wiring septet.domain"
    )
    assert not loaded & set(heavy.split())


def test_every_command_explains_itself(septet: Septet) -> None:
    from septet.cli.main import COMMANDS

    for command in COMMANDS:
        explained = septet(command, "--help")
        assert explained.returncode == 0
        assert "Usage: " in explained.stdout
        assert "Example" in explained.stdout, command


def test_a_shell_completes_commands_and_names(septet: Septet) -> None:
    script = septet("completion", "bash").stdout
    assert "_SEPTET_COMPLETE=bash_complete" in script
    for words, completed in (("septet comp", "plain,completion"), ("septet show a", "plain,adding")):
        asked = {
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
            "_SEPTET_COMPLETE": "bash_complete",
        }
        assert completed in septet(environment=asked).stdout.splitlines()


def test_the_version_is_told(septet: Septet) -> None:
    assert septet("--version").stdout.startswith("septet")
