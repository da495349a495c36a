"""The program that asks a server once: its exit code and what it prints, over servers of every kind."""

import subprocess
import sys

import pytest

from septet.sandboxes.inside import http_probe

SERVER = """\
import http.server, os, socket, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/crash":
            self.connection.close()
            return
        body = b"hello " + self.headers["Accept"].encode() + b"x" * 3000
        self.send_response(int(self.path.strip("/")))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_): pass

http.server.HTTPServer(("localhost", 0), Handler).serve_forever()
"""
TALKER = """\
import socket
server = socket.create_server(("localhost", 0))
while True:
    with server.accept()[0] as connection:
        connection.sendall(b"220 mail\\r\\n")
"""


def probe(
    program: str, path: str = "/200", needed: str = "", wanted: str = "", seconds: str = "20", port: str = "0"
) -> tuple[int, str, str]:
    """Its exit code, what it prints and what it complains about."""
    command = [
        sys.executable,
        http_probe.__file__,
        port,
        path,
        seconds,
        needed,
        sys.executable,
        "-c",
        program,
    ]
    ended = subprocess.run(command, input=wanted, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize(
    ("status", "needed", "wanted", "code"),
    [
        (200, "", "", 0),
        (404, "", "", 0),
        (499, "", "", 0),
        (500, "", "", 1),
        (200, "checked", "hello */*", 0),
        (299, "checked", "hello", 0),
        (300, "checked", "hello", 1),
        (200, "checked", "goodbye", 1),
        (200, "perhaps", "", 0),
    ],
)
def test_an_answer_is_good_by_its_status_and_by_the_text_if_one_is_wanted(
    status: int, needed: str, wanted: str, code: int
) -> None:
    found, printed, complaints = probe(SERVER, f"/{status}", needed, wanted)
    first, second, body = printed.splitlines()
    assert first.startswith(f"GET /{status} on port ")
    assert second.split()[:2] == ["HTTP", str(status)]
    assert body == ("hello */*" + "x" * 3000)[:2000]
    assert (found, complaints) == (code, "")


def test_a_handler_that_closes_without_an_answer_has_crashed() -> None:
    code, printed, _ = probe(SERVER, "/crash")
    assert code == 1
    assert printed.endswith(
        ": the connection was closed without an answer, as when a handler crashes or hangs\n"
    )


@pytest.mark.parametrize(("needed", "code"), [("", 0), ("checked", 1), ("perhaps", 0)])
def test_a_server_of_another_protocol_answers_but_has_no_page(needed: str, code: int) -> None:
    found, printed, _ = probe(TALKER, needed=needed)
    assert found == code
    assert "is open but does not speak HTTP (" in printed


@pytest.mark.parametrize(
    ("program", "needed", "code", "complaint"),
    [
        ("raise SystemExit(3)", "", 3, "the server ended before it answered on any port\n"),
        ("", "", 1, "the server ended before it answered on any port\n"),
        ("", "checked", 1, "the server ended before it answered on any port\n"),
        ("", "perhaps", 0, ""),
        ("raise SystemExit(3)", "perhaps", 3, ""),
        ("import os; os.kill(os.getpid(), 9)", "", 137, "the server ended before it answered on any port\n"),
    ],
)
def test_a_server_that_ends_gives_its_own_code(program: str, needed: str, code: int, complaint: str) -> None:
    assert probe(program, needed=needed) == (code, "", complaint)


@pytest.mark.parametrize(("port", "where"), [("0", "any port"), ("1", "port 1")])
def test_a_server_that_never_answers_is_a_failure(port: str, where: str) -> None:
    found = probe("import time; time.sleep(600)", seconds="0.2", port=port)
    assert found == (1, "", f"no answer on {where} within 0.2 s\n")
