"""Hosts and members as processes: joined servers, invitations, status, restarts, and orderly ends."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
import trustme
from cli.commands import SCRIPTS
from cluster.test_commands import Serving, command, environment, run, serving
from cluster.test_replicas import free_ports

from septet.cluster.endpoint import ConnectOptions, endpoint_of
from septet.cluster.server import find_binary
from septet.cluster.status import fetch_host_status
from septet.domain.presence import Participant

TALK = f"scripted:{SCRIPTS / 'talk.yaml'}"
PATIENCE = 180.0


def until(look: Callable[[], bool]) -> None:
    """Looked at again and again: what is waited for happens in other processes."""
    deadline = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


class Part:
    """A member or conductor, and what it said so far."""

    def __init__(self, home: Path, *words: str) -> None:
        self.heard = home.parent / f"heard-{os.urandom(4).hex()}"
        with self.heard.open("w") as sink:
            self.process = subprocess.Popen(command(*words), env=environment(home), stdout=sink, stderr=sink)

    @property
    def text(self) -> str:
        return self.heard.read_text()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120)


@contextmanager
def part(home: Path, *words: str) -> Generator[Part]:
    started = Part(home, *words)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.process.kill()
        started.process.wait()


def people(home: Path) -> list[Participant]:
    """Who is there, as `septet host status` would tell."""
    found = anyio.run(fetch_host_status, endpoint_of(ConnectOptions(store=home / "host")))
    return [one for one in found.people if one.is_present]


def pids(home: Path, role: str) -> set[int]:
    return {one.presence.pid for one in people(home) if role in one.presence.roles}


@pytest.fixture(scope="module")
def binary() -> str:
    return anyio.run(find_binary)


@contextmanager
def foreign(binary: str, folder: Path, *words: str) -> Generator[str]:
    """Somebody else's nats-server."""
    (port,) = free_ports(1)
    options = ["-a", "127.0.0.1", "-p", str(port), "-l", str(folder / "foreign.log")]
    process = subprocess.Popen([binary, *options, *words])
    try:
        until(lambda: (folder / "foreign.log").exists() and "ready" in (folder / "foreign.log").read_text())
        yield f"nats://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def test_a_host_makes_an_existing_server_ready_and_says_how_to_join(binary: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with foreign(binary, tmp_path, "-js", "-sd", str(tmp_path / "js")) as url:
        with part(home, "host", "--nats", url) as host:
            until(lambda: "conduct with" in host.text)
            lines = host.text.splitlines()
            assert lines[0].startswith(f"ready on {url} (nats-server 2.")
            assert lines[1] == f"join with: septet join {url} --as coder"
            assert host.stop() == 0
        with part(home, "join", url, "--as", "writer,editor", "-m", TALK) as member:
            until(lambda: "serves writer, editor" in member.text)
            done = run(home, "conduct", url, "a poem", "-t", "writer-editor", "--rounds", "4")
            assert (done.returncode, done.stdout) == (0, "Sentence 2 of the poem.\n"), done.stderr
            assert member.stop() == 0


def test_a_server_without_jetstream_is_named(binary: str, tmp_path: Path) -> None:
    with foreign(binary, tmp_path) as url:
        found = run(tmp_path, "host", "--nats", url)

    assert (found.returncode, found.stderr) == (
        5,
        f"septet: the server at {url} has no JetStream: start it with -js\n",
    )


def test_a_member_says_that_it_serves_once_it_does(tmp_path: Path) -> None:
    """It may be started before the host ever was, and be stopped while it waits."""
    (port,) = free_ports(1)
    url, home = f"nats://127.0.0.1:{port}", tmp_path / "home"
    with part(home, "join", url, "--as", "writer", "--name", "ada", "-m", TALK) as member:
        with part(home, "join", url, "--as", "editor") as waiting:
            until(lambda: "no server answers" in waiting.text)
            assert "serves" not in waiting.text
            assert waiting.stop() == 0
        with serving(home, "host", "--port", str(port)):
            until(lambda: "ada serves writer" in member.text)
            assert pids(home, "writer") == {member.process.pid}
            assert member.stop() == 0
            assert pids(home, "writer") == set()


@pytest.mark.torture
def test_who_has_a_members_token_and_wants_more_is_told_so(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home, "host", "--port", "0") as host:
        token = ("--token-file", str(home / "host/tokens/coder"))
        conductor = run(home, "conduct", host.url, "a clock", "--yes", *token)
        onlooker = run(home, "host", "status", host.url, *token)

    for one in (conductor, onlooker):
        assert one.returncode == 5
        assert "this token (coder) belongs to a member" in one.stderr.splitlines()[-1]


@pytest.mark.torture
def test_a_token_opens_its_roles_and_no_other(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home, "host", "--port", "0") as host:
        wrong = run(home, "join", host.url, "--as", "runner", "--token-file", str(home / "host/tokens/coder"))
        invited = run(home, "host", "invite", "laptop", "--as", "writer,editor")
        token = invited.stdout.strip()
        with part(
            tmp_path / "there", "join", host.url, "--as", "writer,editor", "--token-file", token
        ) as member:
            until(lambda: "serves writer, editor" in member.text)
        run(home, "host", "dismiss", "laptop")
        until(lambda: "refused the token" in late(tmp_path, host, token))

    assert wrong.returncode == 5
    assert "this token (coder) may not serve runner" in wrong.stderr
    assert "Subscription Violation" in (home / "host" / "server.log").read_text()


def late(folder: Path, host: Serving, token: str) -> str:
    """What one who was dismissed hears; its token is gone from the host, but not from its machine."""
    kept = folder / "kept"
    if Path(token).exists():
        kept.write_text(Path(token).read_text())
    elif not kept.exists():
        kept.write_text("laptop:gone")
    with part(folder / "there", "join", host.url, "--as", "writer", "--token-file", str(kept)) as member:
        until(lambda: member.process.poll() is not None or "serves" in member.text)
        return member.text


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("host", "invite", "x", "--as", "cook"), 2, "a member cannot join as 'cook'"),
        (("host", "dismiss", "nobody"), 2, "no member 'nobody' was invited"),
        (("host", "--nats", "nats://192.0.2.7:4222"), 2, "sent unencrypted"),
        (("host", "--tls", "no.pem", "no.key", "--host", "0.0.0.0"), 5, "no.pem cannot be read"),
        (("join", "--config", "missing.yaml", "--as", "writer"), 5, "missing.yaml cannot be read"),
    ],
)
@pytest.mark.torture
def test_what_makes_no_sense_is_said_in_one_line(
    tmp_path: Path, words: tuple[str, ...], code: int, text: str
) -> None:
    result = run(tmp_path, *words)

    assert (result.returncode, text in result.stderr) == (code, True), result.stderr
    assert result.stderr.count("\n") == 1


def test_a_host_on_another_address_is_joined_over_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    paper = authority.issue_cert("127.0.0.2")
    certificate, key, signer = (str(tmp_path / name) for name in ("cert.pem", "key.pem", "ca.pem"))
    paper.cert_chain_pems[0].write_to_path(certificate)
    paper.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(signer)
    here, there = tmp_path / "here", tmp_path / "there"
    with part(here, "host", "--host", "127.0.0.2", "--port", "0", "--tls", certificate, key) as host:
        until(lambda: "conduct with" in host.text)
        url = host.text.splitlines()[0].removeprefix("listening on ")
        assert url.startswith("tls://127.0.0.2:")
        token = ("--token-file", str(here / "host" / "tokens" / "writer"))
        stranger = run(there, "join", url, "--as", "writer", *token)
        with part(there, "join", url, "--as", "writer", *token, "--tls-ca", signer) as member:
            until(lambda: "serves writer" in member.text)
            assert pids(here, "writer") == {member.process.pid}  # on the host's machine nothing need be said
        assert host.stop() == 0

    assert stranger.returncode == 5
    assert "is not trusted: name its signer with --tls-ca" in stranger.stderr


@pytest.mark.torture
def test_of_two_conductors_one_goes_on_and_the_other_says_why_it_does_not(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    with serving(home, "host", "--port", "0") as host:
        token = ("--token-file", str(home / "host" / "token"))
        with part(home, "conduct", "a poem", "-t", "writer-editor", "--rounds", "4", "--plain") as first:
            until(lambda: ": a poem" in first.text)
            chat = re.findall(r"(\S+): a poem", first.text)[0]
            until(lambda: any(chat in one.presence.chats for one in people(home)))
            second = run(other, "conduct", host.url, "--resume", chat, "--plain", *token)
            first.process.kill()
            first.process.wait()
        with part(other, "conduct", host.url, "--resume", chat, "--plain", *token) as third:
            until(lambda: any(one.presence.pid == third.process.pid for one in people(home)))
            with part(home, "join", "--as", "writer,editor", "-m", TALK):
                until(lambda: third.process.poll() is not None)
            assert (third.process.returncode, third.text.splitlines()[-1]) == (0, "Sentence 2 of the poem.")

    assert second.returncode == 75
    assert f"(process {first.process.pid}) conducts '{chat}' already" in second.stderr


@pytest.mark.torture
def test_up_starts_a_killed_member_again_and_stops_everything(tmp_path: Path) -> None:
    with serving(tmp_path, "up", "writer-editor", "--port", "0", "--web-port", "0", "-m", TALK) as everything:
        until(lambda: bool(pids(tmp_path, "writer") and pids(tmp_path, "editor")))
        before = pids(tmp_path, "writer")
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        until(lambda: bool(pids(tmp_path, "writer") - before))
        done = run(tmp_path, "conduct", "a poem", "-t", "writer-editor", "--rounds", "4")
        assert (done.returncode, done.stdout) == (0, "Sentence 2 of the poem.\n"), done.stderr
        shown = run(tmp_path, "host", "status").stdout
        told = json.loads(run(tmp_path, "host", "status", "--json").stdout)
        parts = [one.presence.pid for one in people(tmp_path)]
        assert everything.stop() == 0

    assert "rounds over (all 4 rounds were spoken)" in shown
    assert re.search(r"^  \S+ +writer +\S+, process \d+ +\d+ s ago$", shown, re.MULTILINE)
    assert {"SEPTET_LOG"} <= {stream["name"] for stream in told["streams"]}
    assert told["chats"][0]["ended"]
    for pid in parts:
        until(lambda pid=pid: not Path(f"/proc/{pid}").exists())
