"""A web server on this machine's loopback, which programs in a sandbox cannot reach by themselves."""

import http.server
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Tells nobody what it is asked for."""

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  the library's own name
        return


@contextmanager
def served(handler: Callable[..., http.server.BaseHTTPRequestHandler]) -> Generator[str]:
    """Where it answers."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
