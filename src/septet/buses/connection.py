"""A connection to a NATS server that is new enough, that reconnects by itself and whose errors are ours."""

import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from time import monotonic

import anyio
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js.manager import JetStreamManager

from septet.domain.values import Value
from septet.errors import BadConfig, Unreachable

OLDEST = (2, 11)
"""The fence compares the last sequence of a whole chat: older servers reject every append after the first."""
PAUSE = 0.2
"""Seconds between two tries to connect."""
TRIES = 4
PENDING = 64 << 20
"""Bytes that may wait while the server is away."""


class Link(Value):
    """Where a server is and what opens it. `token` may also be part of the address."""

    address: str
    token: str = ""
    authority: str = ""
    """A file with the certificate that signed the server's (TLS)."""
    name: str = "septet"


@asynccontextmanager
async def connect(link: Link, patience: float = 5.0, wait: float = 0.0) -> AsyncGenerator[Client]:
    """A client that reconnects for ever. A server that is not there yet is waited for `wait` seconds.

    Raises Unreachable or BadConfig where the first connection fails.
    """
    check_address(link.address)
    client = await first_connection(link, patience, wait)
    try:
        yield client
    finally:
        with anyio.move_on_after(patience, shield=True), suppress(OSError):
            await client.close()


async def first_connection(link: Link, patience: float, wait: float) -> Client:
    deadline = monotonic() + wait
    while True:
        try:
            return await open_client(link, patience)
        except Unreachable:
            if monotonic() > deadline:
                raise
        await anyio.sleep(PAUSE)


async def open_client(link: Link, patience: float) -> Client:
    client, faults = Client(), list[Exception]()

    async def note(fault: Exception) -> None:
        """Every broken connection is reported here; the client mends it by itself."""
        faults.append(fault)
        del faults[:-TRIES]

    options: dict[str, object] = {
        "name": link.name,
        "connect_timeout": patience,
        "max_reconnect_attempts": TRIES,  # at first: a wrong address must be said at once
        "reconnect_time_wait": PAUSE,
        "ping_interval": 10,
        "pending_size": PENDING,
        "error_cb": note,
        "token": link.token or None,
        "tls": ssl.create_default_context(cafile=link.authority) if link.authority else None,
    }
    try:
        await client.connect([link.address], **options)  # pyright: ignore[reportArgumentType]  # its options are typed one by one
        client.options["max_reconnect_attempts"] = -1
        await check_server(client, link)
    except BaseException as error:
        with anyio.move_on_after(patience, shield=True), suppress(OSError):
            await client.close()
        if isinstance(error, (nats.errors.Error, OSError)):
            raise refusal(link, [error, *faults]) from error
        raise
    return client


async def check_server(client: Client, link: Link) -> None:
    version = client.connected_server_version
    if (version.major, version.minor) < OLDEST:
        raise BadConfig(
            f"the server at {shown(link.address)} is too old (nats-server {version.major}.{version.minor})",
            f"{'.'.join(map(str, OLDEST))} or newer is needed",
        )
    try:
        await JetStreamManager(client).account_info()
    except nats.js.errors.Error as error:
        raise BadConfig(
            f"the server at {shown(link.address)} has no JetStream", "start it with -js"
        ) from error


def refusal(link: Link, faults: list[Exception]) -> BadConfig | Unreachable:
    """What the tries add up to: a server may hang up before its reason has come through, but not every time."""
    where, words = shown(link.address), " ".join(map(str, faults)).lower()
    if "authorization" in words or "authentication" in words:
        return BadConfig(
            f"the server at {where} refused the token", "pass the one that `septet host` printed"
        )
    reason = str(faults[-1]) or type(faults[-1]).__name__
    return Unreachable(f"no server answers at {where} ({reason})", "is it running, and is the token right?")


def shown(address: str) -> str:
    """The address without the secret that may be in it."""
    return re.sub(r"//[^@/]*@", "//", address)


def check_address(address: str) -> None:
    if not re.fullmatch(r"(nats|tls|ws|wss)://([^@/\s]+@)?[^@/\s:]+(:\d+)?/?", address):
        raise BadConfig(f"'{shown(address)}' is no address of a server", "write nats://HOST:PORT")
