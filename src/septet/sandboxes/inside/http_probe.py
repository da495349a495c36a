"""Runs a server inside a sandbox, sends it one request, prints the answer and terminates it.

Run as `python -c SOURCE PORT PATH SECONDS NEEDED COMMAND…`: prints `HTTP STATUS REASON` and the beginning of the
answer. Exits with 0 if the status is below 500; if NEEDED is `checked`, with 0 if the status is 2xx and the body
contains the text on standard input. Exits with the server's own code if that ended before, with 1 if it never answered
or, though it speaks HTTP otherwise, closed the connection without an answer. An open port with another protocol counts
as an answer. With port 0, the lowest port that the server opens is used. If NEEDED is `perhaps`, the program may end
with 0.
"""

import http.client
import os
import subprocess
import sys
import time

_POLL_SECONDS, _TIMEOUT, _MAX_SHOWN, _MAX_READ = 0.05, 5.0, 2000, 4 << 20
_TCP_LISTEN = "0A"
_HEADERS = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64)", "Accept": "*/*"}
"""As a browser begins: a server cannot tell a check from people by what is missing."""


def ask(port: int, path: str, wanted: "str | None") -> "tuple[bool, str] | None":
    """Whether the answer is good, and its text; None if nothing listens yet."""
    connection = http.client.HTTPConnection("localhost", port, timeout=_TIMEOUT)
    try:
        connection.request("GET", path, headers=_HEADERS)
        answer = connection.getresponse()
        body = answer.read(_MAX_READ).decode("utf-8", "replace")
    except ConnectionRefusedError:
        return None
    except ConnectionError:  # closed or reset without any bytes
        return no_answer(port, path, "the connection was closed without an answer", wanted)
    except TimeoutError:
        return no_answer(port, path, f"no answer came within {_TIMEOUT:.0f} seconds", wanted)
    except (http.client.HTTPException, OSError) as error:
        return wanted is None, f"port {port} is open but does not speak HTTP ({type(error).__name__})"
    finally:
        connection.close()
    good = answer.status < 500 if wanted is None else 200 <= answer.status < 300 and wanted in body
    return good, f"GET {path} on port {port}\nHTTP {answer.status} {answer.reason}\n{body[:_MAX_SHOWN]}"


def no_answer(port: int, path: str, why: str, wanted: "str | None") -> "tuple[bool, str]":
    """A failure if the server speaks HTTP: its handler has crashed or hangs. Other servers need not answer."""
    if speaks_http(port):
        return False, f"GET {path} on port {port}: {why}, as when a handler crashes or hangs"
    return wanted is None, f"port {port} is open but does not speak HTTP ({why})"


def speaks_http(port: int) -> bool:
    """Whether an unknown method gets an answer: an HTTP server sends one without calling its handlers."""
    connection = http.client.HTTPConnection("localhost", port, timeout=_TIMEOUT)
    try:
        connection.request("SEPTET", "/")
        connection.getresponse()
    except (http.client.HTTPException, OSError):
        return False
    finally:
        connection.close()
    return True


def find_port(session: int) -> "int | None":
    """The lowest port that a process of the session listens on; None if there is none."""
    inodes = sockets_of(session)
    ports: list[int] = []
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}") as table:
            rows = [line.split() for line in table.readlines()[1:]]
        ports += [
            int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == _TCP_LISTEN and row[9] in inodes
        ]
    return min(ports, default=None)


def sockets_of(session: int) -> "set[str]":
    """The inodes of the sockets that processes of the session have open."""
    inodes: set[str] = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(pid)) != session:
                continue
            for descriptor in os.listdir(f"/proc/{pid}/fd"):
                target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
                inodes |= {target[8:-1]} if target.startswith("socket:[") else set()
        except OSError:
            continue
    return inodes


def probe(
    server: "subprocess.Popen[bytes]", port: int, path: str, end: float, wanted: "str | None"
) -> "tuple[bool, str] | None":
    while server.poll() is None and time.monotonic() < end:
        try:
            found_port = port or find_port(server.pid)
        except OSError:
            found_port = None
        answer = ask(found_port, path, wanted) if found_port else None
        if answer is not None:
            return answer
        time.sleep(_POLL_SECONDS)
    return None


def main() -> int:
    port, path, seconds, needed, *command = sys.argv[1:]
    wanted = sys.stdin.read() if needed == "checked" else None
    server = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL)
    answer = probe(server, int(port), path, time.monotonic() + float(seconds), wanted)
    code = server.poll()
    server.terminate()
    try:
        server.wait(_TIMEOUT)
    except subprocess.TimeoutExpired:
        server.kill()
    if answer is not None:
        print(answer[1])  # noqa: T201  this program's output
        return 0 if answer[0] else 1
    where = f"port {port}" if int(port) else "any port"
    if code == 0 and needed == "perhaps":
        return 0
    if code is not None:
        sys.stderr.write(f"the server ended before it answered on {where}\n" if needed != "perhaps" else "")
        return 128 - code if code < 0 else code or 1
    hidden = (
        "" if int(port) or os.access("/proc/net/tcp", os.R_OK) else " (ports cannot be seen in this sandbox)"
    )
    sys.stderr.write(f"no answer on {where} within {seconds} s{hidden}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
