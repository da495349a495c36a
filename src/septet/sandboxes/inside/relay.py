"""Relays a loopback port inside a sandbox to the proxy's unix socket outside, and sets the proxy variables.

Run as `python -c SOURCE SOCKET DIRECT COMMAND…`. DIRECT are comma-separated names that bypass the proxy: the
sandbox's own loopback.
"""

import os
import socket
import subprocess
import sys
import threading

_PIECE_BYTES = 1 << 16


def _copy(source: socket.socket, sink: socket.socket) -> None:
    try:
        while piece := source.recv(_PIECE_BYTES):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return


def _connect(client: socket.socket, socket_path: str) -> None:
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(socket_path)
    except OSError:
        client.close()
        return
    for ends in ((client, server), (server, client)):
        threading.Thread(target=_copy, args=ends, daemon=True).start()


def _listen(listener: socket.socket, socket_path: str) -> None:
    while True:
        client, _ = listener.accept()
        _connect(client, socket_path)


def start(socket_path: str, direct: str) -> "dict[str, str]":
    """Start the relay in threads; returns the proxy variables for programs."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_listen, args=(listener, socket_path), daemon=True).start()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    return {**dict.fromkeys(names, address), "NO_PROXY": direct, "no_proxy": direct}


def main() -> int:
    socket_path, direct, *command = sys.argv[1:]
    try:
        variables = {**os.environ, **start(socket_path, direct)}
        code = subprocess.run(
            command, env=variables, close_fds=False, check=False
        ).returncode  # test runs report over an inherited one
    except FileNotFoundError:
        sys.stderr.write(f"{command[0]}: not found\n")
        return 127
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main())
