"""`host`, `join`, `conduct` and `up` as a person uses them: real processes, stopped by signals."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from cli.commands import SMALL

from septet.cli.host import ConnectOptions, endpoint_of
from septet.cluster.connection import connect_nats
from septet.cluster.store import open_nats_store
from septet.domain.events import ChatEnded


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "septet", *words]


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SEPTET")}
    return {**kept, "SEPTET_HOME": str(home)}


class Serving:
    """A process that stays, and the address that it printed."""

    def __init__(self, home: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            command(*words), env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        found = re.fullmatch(r"listening on (nats://\S+:(\d+))\n", self.process.stdout.readline())
        assert found, self.process.communicate()[1]
        self.url, self.port = found[1], found[2]
        self.hint = self.process.stdout.readline()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=120)
        return self.process.returncode


@contextmanager
def serving(home: Path, *words: str) -> Generator[Serving]:
    serves = Serving(home, *words)
    try:
        yield serves
    finally:
        if serves.process.poll() is None:
            serves.stop()


def run(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(*words), env=environment(home), capture_output=True, text=True, timeout=120, check=False
    )


def test_a_host_prints_how_to_join_it_and_stops_on_sigterm(tmp_path: Path) -> None:
    with serving(tmp_path, "host", "--port", "0") as host:
        assert host.hint.startswith(f"join with: septet join {host.url} --as ")
        assert str(tmp_path / "host" / "token") in host.hint
        assert host.stop() == 0


def test_a_second_host_on_the_port_is_told_so(tmp_path: Path) -> None:
    with serving(tmp_path, "host", "--port", "0") as host:
        second = run(tmp_path, "host", "--port", host.port, "--store", str(tmp_path / "other"))

    assert second.returncode == 2
    assert second.stderr == (
        f"septet: port {host.port} is taken, perhaps by another septet host: stop that or pass another --port\n"
    )


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("host", "--host", "0.0.0.0"), 2, "messages would be sent unencrypted"),
        (("join", "nats://127.0.0.1:4222", "--as", "cook"), 2, "a member cannot join as 'cook'"),
        (("join", "here", "--as", "coder"), 5, "is not the address of a server"),
        (("join", "nats://127.0.0.1:1", "--as", "coder", "--token-file", "missing"), 5, "cannot be read"),
    ],
)
@pytest.mark.torture
def test_what_makes_no_sense_is_said_in_one_line(
    tmp_path: Path, words: tuple[str, ...], code: int, text: str
) -> None:
    result = run(tmp_path, *words)

    assert result.returncode == code
    assert text in result.stderr
    assert "Traceback" not in result.stderr


def test_a_stranger_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path / "there", "host", "--port", "0") as host:
        result = run(tmp_path / "here", "join", host.url, "--as", "coder")

    assert result.returncode == 5
    assert "refused the token" in result.stderr


async def claim(home: Path, chat: str) -> None:
    """Store an end that nothing bears out."""
    async with connect_nats(endpoint_of(ConnectOptions(store=home / "host"))) as client:
        store = await open_nats_store(client)
        await store.append(chat, ChatEnded(reason="done", by="coder"), after=None)


def test_a_goal_is_built_by_members_in_other_processes_whatever_end_the_log_claims(tmp_path: Path) -> None:
    with serving(tmp_path / "there", "up", "--port", "0", "--no-web", "--unsafe-local") as there:
        token = str(tmp_path / "there" / "host" / "token")
        words = ("--plain", "--token-file", token)
        begun = run(tmp_path / "here", "conduct", there.url, "add two numbers", "-m", SMALL, "-q", *words)
        assert begun.returncode == 4, begun.stderr
        chat = shlex.split(begun.stderr.partition("--resume ")[2])[0]
        anyio.run(claim, tmp_path / "there", chat)
        shown = run(tmp_path / "there", "host", "status").stdout
        result = run(tmp_path / "here", "conduct", there.url, "--resume", chat, "--yes", *words)
        watched = run(tmp_path / "here", "watch", chat, "--plain")
        assert there.stop() == 0

    assert "claimed by coder, not proven" in shown
    assert result.returncode == 0, result.stderr
    assert "done; only the coder's own tests show P1" in result.stdout
    assert (watched.returncode, watched.stdout) == (0, result.stdout)
    assert "planner  2 requirements" in watched.stderr
    workspace = Path(result.stdout.rsplit("the program is in ", 1)[1].strip())
    assert workspace.is_relative_to(tmp_path / "here")
    assert {"add.py", "test_add.py"} <= {path.name for path in workspace.iterdir()}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.torture
def test_an_interrupted_conductor_names_the_command_that_goes_on(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    here = tmp_path / "here"
    with serving(tmp_path / "there", "host", "--port", "0") as host:
        token = tmp_path / "there" / "host" / "token"
        words = ("-m", SMALL, "--yes", "--plain", "--token-file", str(token))
        conductor = subprocess.Popen(
            command("conduct", host.url, "add two numbers", "-q", "--json", *words),
            env=environment(here),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert conductor.stdout is not None
        while "turn_opened" not in (line := conductor.stdout.readline()):
            assert line
        chat = line.partition('"source":"septet/')[2].partition('"')[0]
        conductor.send_signal(number)
        rest, said = conductor.communicate(timeout=120)
        assert f'"exit_code":{code}' in rest.splitlines()[-1]
        goes_on = f"septet conduct {host.url} --token-file {token} --resume {chat}"
        assert (conductor.returncode, said) == (code, f"septet: interrupted and saved: {goes_on}\n")
        listed = run(here, "list").stdout
        assert listed.startswith(chat)
        assert f"on {host.url}" in listed
        for lost in (("resume",), ("resume", chat), ("show", chat)):
            refused = run(here, *lost)
            assert refused.returncode == 2
            assert refused.stderr == f"septet: the chat '{chat}' is on {host.url}: {goes_on}\n"
        assert f"stays on {host.url}" in run(here, "rm", chat, "--yes").stdout
        assert run(here, "list").stdout == ""


@pytest.mark.torture
def test_a_conducted_chat_that_waits_is_answered_by_the_command_that_it_names(tmp_path: Path) -> None:
    with serving(tmp_path / "there", "up", "--port", "0", "--no-web", "--unsafe-local") as there:
        token = str(tmp_path / "there" / "host" / "token")
        words = ("-m", SMALL, "--plain", "-q", "--token-file", token)
        waits = run(tmp_path / "here", "conduct", there.url, "add two numbers", *words)
        assert waits.returncode == 4, waits.stderr
        answer = shlex.split(waits.stderr.partition("answer with: septet ")[2])
        done = run(tmp_path / "here", *answer)
        assert done.returncode == 0, done.stderr
        assert "done; only the coder's own tests show P1" in run(tmp_path / "here", "list").stdout
        (listed,) = run(tmp_path / "here", "list", "--json").stdout.splitlines()
        assert '"status":"done"' in listed
        assert f'"server":"{there.url}"' in listed


def test_ctrl_c_ends_everything_quietly(tmp_path: Path) -> None:
    """At a terminal the key reaches every process: the server must be the last to go."""
    up = command("up", "--port", "0", "--web-port", "0", "-m", SMALL, "--unsafe-local")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        up, env=environment(tmp_path), stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        serving = 0
        while serving < 5:  # planner, coder, runner, reviewer and exemplar
            serving += "serves" in process.stderr.readline()
        os.killpg(process.pid, signal.SIGINT)
        _, complaints = process.communicate(timeout=120)

    assert process.returncode == 0
    assert complaints == ""


def test_the_program_of_the_page_on_topics_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    program = page.partition("## Topics")[2].partition("```python\n")[2].partition("```")[0]
    with serving(tmp_path, "host", "--port", "0"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "{'writer': 'writer/essay-1', 'pages': ['Once upon a time']}\n"
