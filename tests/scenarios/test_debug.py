"""`--debug` keeps what the models are told, and no secret."""

import stat

from cli.commands import SMALL, Septet

SECRET = "sk-" + "very-secret-0123456789"


def test_prompts_are_in_a_private_file_and_keys_are_not(septet: Septet) -> None:
    keys = {"OPENAI_API_KEY": SECRET, "ANTHROPIC_API_KEY": SECRET}
    done = septet("run", "add", "-m", SMALL, "--yes", "--debug", "-n", "adding", environment=keys)
    assert done.returncode == 0, done.stderr
    path = septet.home / "logs" / "adding.log"
    assert str(path) in done.stderr
    assert "[planner 1, system]\nYou are the planner" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for one in septet.home.parent.rglob("*"):
        assert not one.is_file() or SECRET.encode() not in one.read_bytes()
