"""The real server as a process with a home of its own, and requests to it that can be as wrong as we like."""

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from websockets.sync.client import ClientConnection, connect

SCRIPTS = Path(__file__).parent.parent / "scripts"
SMALL = f"scripted:{SCRIPTS / 'small.yaml'}"
PATIENCE = 120


class Answer(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, object]:
        return msgspec.json.decode(self.body, type=dict[str, object])


class Web:
    """`septet web`; `restart` keeps home and port, as a person would."""

    def __init__(
        self,
        home: Path,
        model: str = SMALL,
        port: int = 0,
        *options: str,
        variables: Mapping[str, str] | None = None,
        complaints: Path | None = None,
    ) -> None:
        self.home = home
        self.complaints = complaints
        """A file for what it prints on stderr."""
        self.variables = variables or {}
        self.model = model
        self.options = options
        self.process = self._start(port)
        link = urlsplit(self._line())
        self.port = link.port or 0
        self.origin = f"http://127.0.0.1:{self.port}"
        self.token = link.query.removeprefix("token=")
        self._cookie = ""

    @property
    def link(self) -> str:
        """What opens a browser."""
        return f"{self.origin}/?token={self.token}"

    def _start(self, port: int) -> subprocess.Popen[str]:
        home = str(self.home)
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home.parent), "SEPTET_HOME": home}
        command = [sys.executable, "-m", "septet", "web", "--port", str(port), "--no-open", "-m", self.model]
        with self.complaints.open("a") if self.complaints else nullcontext() as stderr:
            return subprocess.Popen(
                [*command, *self.options],
                env={**environment, **self.variables},
                cwd=self.home.parent,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if not line.startswith("http://"):
            self._close()
            raise AssertionError(f"the server did not start ({self.process.wait(PATIENCE)})")
        return line

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self._close()

    def restart(self) -> None:
        """On the same port; the cookie that was given out still opens it."""
        self.process = self._start(self.port)
        self.token = urlsplit(self._line()).query.removeprefix("token=")

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        self._close()
        return code

    def _close(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.close()

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """A request exactly as given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            fields = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(status=answer.status, headers=fields, body=answer.read())
        finally:
            connection.close()

    @property
    def cookie(self) -> str:
        """The cookie that the token is changed for, once."""
        if not self._cookie:
            answer = self.ask("GET", f"/?token={self.token}")
            assert answer.status == 303, answer
            self._cookie = answer.headers["set-cookie"].partition(";")[0]
        return self._cookie

    def get(self, path: str) -> Answer:
        return self.ask("GET", path, headers={"Cookie": self.cookie})

    def post(self, path: str, body: object) -> Answer:
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return self.ask("POST", path, content, {"Cookie": self.cookie, "Origin": self.origin})

    def begin(self, goal: str = "add two numbers", **more: object) -> str:
        answer = self.post("/api/chats", {"goal": goal, **more})
        assert answer.status == 201, answer.body
        return str(answer.json()["chat"])

    def act(self, chat: str, act: str, **more: object) -> Answer:
        return self.post(f"/api/chats/{chat}/acts", {"act": act, **more})

    def watch(self, chat: str = "", after: int = 0) -> ClientConnection:
        query = f"?chat={chat}&after={after}" if chat else ""
        return connect(
            f"ws://127.0.0.1:{self.port}/api/live{query}",
            additional_headers={"Cookie": self.cookie, "Origin": self.origin},
            max_size=None,
            compression=None,
        )

    def until(self, chat: str, kind: str, after: int = 0) -> list[dict[str, object]]:
        """The log up to the first event of a kind, as a watcher hears it."""
        events: list[dict[str, object]] = []
        with self.watch(chat, after) as socket:
            while not any(event["type"] == f"septet.{kind}" for event in events):
                events += events_of(socket.recv(PATIENCE))
        return events


def events_of(message: str | bytes) -> list[dict[str, object]]:
    frame = msgspec.json.decode(message, type=dict[str, object])
    return msgspec.convert(frame.get("events", []), list[dict[str, object]])


def kinds(events: list[dict[str, object]]) -> list[str]:
    return [str(event["type"]).removeprefix("septet.") for event in events]
