"""Gives programs inside a sandbox a proxy that is a unix socket outside: `python -c SOURCE SOCKET DIRECT COMMAND…`.

DIRECT are the names, separated by commas, that are reached without the proxy: the sandbox's own loopback.
"""

import os
import socket
import subprocess
import sys
import threading

_PIECE = 1 << 16


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    try:
        while piece := source.recv(_PIECE):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return


def _connect(client: socket.socket, place: str) -> None:
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(place)
    except OSError:
        client.close()
        return
    for ends in ((client, server), (server, client)):
        threading.Thread(target=_pass_on, args=ends, daemon=True).start()


def _listen(listener: socket.socket, place: str) -> None:
    while True:
        client, _ = listener.accept()
        _connect(client, place)


def start(place: str, direct: str) -> "dict[str, str]":
    """Serve from now on; the variables that tell programs of it."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_listen, args=(listener, place), daemon=True).start()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    return {**dict.fromkeys(names, address), "NO_PROXY": direct, "no_proxy": direct}


def main() -> int:
    place, direct, *command = sys.argv[1:]
    try:
        variables = {**os.environ, **start(place, direct)}
        code = subprocess.run(
            command, env=variables, close_fds=False, check=False
        ).returncode  # tests report over one
    except FileNotFoundError:
        sys.stderr.write(f"{command[0]}: not found\n")
        return 127
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main())
