"""The server process of an embedded model: OpenAI-compatible, on loopback, protected by a key.

Started as `python -m septet.models.local.server SETTINGS`. There is one per model on a machine, shared by all agents;
it ends when it has been idle for a while.
"""

import os
import re
import secrets
import sys
import time
import urllib.request
from importlib import import_module
from pathlib import Path
from typing import Protocol

import msgspec

from septet.common.values import Value

ACTIVE_REQUESTS = re.compile(
    rb"^llamacpp:(?:requests_processing|requests_deferred) (?P<count>\d+)", re.MULTILINE
)
TOKEN_COUNTS = re.compile(rb"^llamacpp:(?:prompt_tokens_total|tokens_predicted_total) \S+", re.MULTILINE)


class ServerSettings(Value):
    """The argument of the process; `card` is the path of the file for its address and key."""

    name: str
    weights: str
    card: str
    context: int = 16384
    slots: int = 4
    threads: int = 1
    idle_seconds: float = 300.0


class ServerCard(Value):
    url: str
    key: str
    pid: int


def main(argument: str) -> int:
    settings = msgspec.json.decode(argument, type=ServerSettings)
    lock = try_lock(Path(settings.card).with_suffix(".lock"))
    if lock is None:
        return 0
    key = secrets.token_urlsafe(24)
    server = start_server(settings, key)
    card = Path(settings.card)
    write_card(card, ServerCard(url=server.listening_address, key=key, pid=os.getpid()))
    try:
        wait_until_idle(server.listening_address, key, settings.idle_seconds)
    finally:
        card.unlink(missing_ok=True)
    return 0


def try_lock(path: Path) -> int | None:
    """Take a lock until the process ends; None if another process has it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return handle
    except OSError:
        os.close(handle)
        return None
    return handle


class NativeServer(Protocol):
    """The part of the native server that this module uses; the library has no types."""

    listening_address: str


def start_server(settings: ServerSettings, key: str) -> NativeServer:
    library = import_module("xllamacpp")
    params = library.CommonParams()
    params.model.path = settings.weights
    params.model_alias = {settings.name}
    params.n_ctx = settings.context
    params.n_parallel = settings.slots
    params.kv_unified = True
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.ui = False
    params.cors_origins = ""
    params.endpoint_metrics = True
    params.sse_ping_interval = 10
    params.cache_ram_mib = 256
    params.cpuparams.n_threads = settings.threads
    params.cpuparams_batch.n_threads = settings.threads
    server: NativeServer = library.Server(params)
    return server


def write_card(path: Path, card: ServerCard) -> None:
    draft = path.with_suffix(f".{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(handle, "wb") as file:  # noqa: PTH123  # os.open set the mode
        file.write(msgspec.json.encode(card))
    draft.replace(path)


def wait_until_idle(url: str, key: str, seconds: float) -> None:
    last, since = b"", time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(min(5.0, seconds / 4))
        metrics = read_metrics(url, key)
        tokens = b" ".join(TOKEN_COUNTS.findall(metrics))
        busy = any(int(match["count"]) for match in ACTIVE_REQUESTS.finditer(metrics))
        if busy or tokens != last:
            last, since = tokens, time.monotonic()


def read_metrics(url: str, key: str) -> bytes:
    request = urllib.request.Request(f"{url}/metrics", headers={"Authorization": f"Bearer {key}"})  # noqa: S310  # our own loopback address
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310  # as above
        return answer.read()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
