"""`exec` is the runner's own way: the same sandbox, limits and result."""

from pathlib import Path

import msgspec
from cli.commands import Septet


def folder(septet: Septet) -> str:
    """A workspace of its own: the person's home would be refused."""
    path = septet.home.parent / "w"
    path.mkdir(exist_ok=True)
    return str(path)


def test_a_command_runs_and_its_exit_code_is_ours(septet: Septet) -> None:
    program = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"
    done = septet("exec", "-C", folder(septet), "--", "python", "-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")


def test_a_python_file_runs_where_it_is(septet: Septet) -> None:
    (Path(folder(septet)) / "hello.py").write_text("open('made.txt', 'w').write('x'); print('hello')")
    done = septet("exec", "-C", folder(septet), "hello.py", "--json")
    result = msgspec.json.decode(done.stdout)
    assert (result["exit_code"], result["stdout"], result["rung"]) == (0, "hello\n", "bubblewrap")
    assert [change["path"] for change in result["changes"]] == ["made.txt"]


def test_a_limit_is_named(septet: Septet) -> None:
    stopped = septet("exec", "-C", folder(septet), "--max-time", "0.5", "--", "sleep", "30")
    assert stopped.returncode == 124
    assert "stopped by the time limit" in stopped.stderr


def test_secrets_of_the_person_are_not_there(septet: Septet, tmp_path: Path) -> None:
    septet.environment["OPENAI_API_KEY"] = "sk-secret"
    (tmp_path / "secret").write_text("key")
    seen = septet("exec", "-C", folder(septet), "--", "sh", "-c", f"env; cat {tmp_path}/secret")
    assert "sk-secret" not in seen.stdout
    assert seen.returncode != 0
