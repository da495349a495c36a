"""`exec` is the runner's own way: the same sandbox, limits and result."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
from cli.commands import PATIENCE, Septet

from septet.common.pictures import recognise


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
    assert result.pop("duration_s") > 0
    assert result == {
        "exit_code": 0,
        "signal": None,
        "reason": "exited",
        "stdout": "hello\n",
        "stderr": "",
        "files_new": ["made.txt"],
        "files_changed": [],
        "truncated": False,
        "sandbox": "bubblewrap",
    }


def test_a_limit_is_named(septet: Septet) -> None:
    stopped = septet("exec", "-C", folder(septet), "--time", "0.5", "--", "sleep", "30")
    assert (stopped.returncode, "stopped by the time limit" in stopped.stderr) == (137, True)


@pytest.mark.parametrize(
    ("options", "program", "expected"),
    [
        (["--time", "0.5"], "while True: pass", {"reason": "timed_out", "signal": 9}),
        (["--memory", "64"], "x = bytearray(1 << 29)", {"reason": "out_of_memory", "exit_code": 1}),
        ([], "import os; os.kill(os.getpid(), 15)", {"reason": "killed", "signal": 15, "exit_code": 143}),
        ([], "print('x' * 200_000)", {"reason": "exited", "truncated": True, "exit_code": 0}),
        ([], "open('kept', 'a').write('y')", {"files_new": [], "files_changed": ["kept"]}),
    ],
)
@pytest.mark.torture
def test_every_end_has_its_reason(
    septet: Septet, options: list[str], program: str, expected: dict[str, object]
) -> None:
    (Path(folder(septet)) / "kept").write_text("x")
    done = septet("exec", "-C", folder(septet), *options, "--json", "--", "python", "-c", program)
    result = msgspec.json.decode(done.stdout, type=dict[str, object])
    assert {key: result[key] for key in expected} == expected
    assert done.returncode == result["exit_code"]


def test_output_comes_while_the_program_runs(septet: Septet) -> None:
    """The program ends only when somebody who has seen its first line makes a file."""
    wait = "import os, time\nprint('first')\nwhile not os.path.exists('go'): time.sleep(0.02)\nprint('last')"
    process = septet.start("exec", "-C", folder(septet), "--", "python", "-c", wait)
    assert process.stdout is not None
    assert process.stdout.readline() == "first\n"
    (Path(folder(septet)) / "go").touch()
    rest, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, rest, errors) == (0, "last\n", "")


CELLS = "# %% first\nx = 20\n# %% then\nprint('now')\nx + 22\n"


def test_cells_keep_their_state(septet: Septet) -> None:
    (Path(folder(septet)) / "steps.py").write_text(CELLS)
    done = septet("exec", "-C", folder(septet), "--kernel", "steps.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "now\n42\n", "")


def test_a_notebook_runs_to_its_first_failure(septet: Septet) -> None:
    code = ["%matplotlib inline\nx = 1", "x + 1", "raise SystemExit('why')", "print('never')"]
    cells = [{"cell_type": "markdown", "source": ["# Title"]}]
    cells += [{"cell_type": "code", "source": text.splitlines(keepends=True)} for text in code]
    (Path(folder(septet)) / "book.ipynb").write_bytes(msgspec.json.encode({"cells": cells, "nbformat": 4}))
    done = septet("exec", "-C", folder(septet), "--kernel", "--json", "book.ipynb")
    result = msgspec.json.decode(done.stdout)
    assert (done.returncode, result["stdout"], len(result["cells"])) == (1, "2\n", 3)
    assert "SystemExit: why" in result["stderr"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.py"], "there is no file 'nowhere.py'"),
        (["--kernel", "text.txt"], "has no cells of Python"),
        (["--kernel", "bad.ipynb"], "is not a valid notebook"),
        (["--network", "a b", "--", "true"], "is not a valid host"),
    ],
)
def test_what_cannot_be_run_is_said_in_a_line(septet: Septet, words: list[str], said: str) -> None:
    for name in ("text.txt", "bad.ipynb"):
        (Path(folder(septet)) / name).write_text("words")
    done = septet("exec", "-C", folder(septet), *words)
    assert (done.returncode, said in done.stderr, done.stderr.count("\n")) == (2, True, 1)


@pytest.mark.parametrize(
    ("name", "text", "program"),
    [
        ("a.js", "console.log(6 * 7)", "node"),
        ("a.sh", "echo $((6 * 7))", "bash"),
        ("a.pl", "print 6 * 7, qq(\\n)", "perl"),
    ],
)
@pytest.mark.torture
def test_files_of_other_languages_run_by_their_own(
    septet: Septet, name: str, text: str, program: str
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed here")
    (Path(folder(septet)) / name).write_text(text)
    assert septet("exec", "-C", folder(septet), name).stdout == "42\n"


def test_a_server_is_asked_and_a_window_leaves_its_picture(septet: Septet) -> None:
    serve = "from http.server import *\nHTTPServer(('', 0), SimpleHTTPRequestHandler).serve_forever()"
    (Path(folder(septet)) / "serve.py").write_text(serve)
    done = septet("exec", "-C", folder(septet), "serve.py")
    assert (done.returncode, "HTTP 200 OK" in done.stdout) == (0, True)
    if shutil.which("Xvfb") is None or find_spec("tkinter") is None:
        pytest.skip("Xvfb or tkinter is not installed here")
    window = "import tkinter\nw = tkinter.Tk()\ntkinter.Label(w, text='hello', bg='red').pack()\nw.mainloop()"
    (Path(folder(septet)) / "window.py").write_text(window)
    assert septet("exec", "-C", folder(septet), "--as", "screen", "window.py").returncode == 0
    assert recognise((Path(folder(septet)) / "screenshot.png").read_bytes()).error == ""


def test_secrets_of_the_person_are_not_there(septet: Septet, tmp_path: Path) -> None:
    septet.environment["OPENAI_API_KEY"] = "sk-secret"
    (tmp_path / "secret").write_text("key")
    seen = septet("exec", "-C", folder(septet), "--", "sh", "-c", f"env; cat {tmp_path}/secret")
    assert "sk-secret" not in seen.stdout
    assert seen.returncode != 0
