"""Runs a command inside a sandbox with a proxy that is a unix socket: `python -c SOURCE SOCKET COMMAND…`."""

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


def main() -> int:
    place, *command = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_listen, args=(listener, place), daemon=True).start()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    return subprocess.run(
        command, env={**os.environ, **dict.fromkeys(names, address)}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
