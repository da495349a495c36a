"""A connection to a NATS server that is new enough, that reconnects by itself and whose errors are ours."""

import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js.manager import JetStreamManager

from septet.domain.values import Value
from septet.errors import BadConfig, Unreachable

OLDEST = (2, 11)
"""The fence compares the last sequence of a whole chat: older servers reject every append after the first."""
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
async def connect(link: Link, patience: float = 5.0) -> AsyncGenerator[Client]:
    """A client that reconnects for ever. Raises Unreachable or BadConfig where the first try fails."""
    check_address(link.address)
    client, faults = Client(), list[Exception]()

    async def note(fault: Exception) -> None:
        """Every broken connection is reported here; the client mends it by itself."""
        faults[:] = [fault]

    options: dict[str, object] = {
        "name": link.name,
        "allow_reconnect": True,
        "connect_timeout": patience,
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": 0.2,
        "ping_interval": 10,
        "pending_size": PENDING,
        "error_cb": note,
    }
    if link.token:
        options["token"] = link.token
    if link.authority:
        options["tls"] = ssl.create_default_context(cafile=link.authority)
    try:
        await open_client(client, link, options)
    except (nats.errors.Error, OSError, TimeoutError) as error:
        await client.close()
        raise refusal(link, faults[-1] if faults else error) from error
    try:
        await check_server(client, link)
        yield client
    finally:
        with anyio.move_on_after(patience, shield=True), suppress(OSError):
            await client.close()


async def open_client(client: Client, link: Link, options: dict[str, object]) -> None:
    # The first connection is tried once: a wrong address must be said at once, not after retries.
    await client.connect([link.address], **{**options, "max_reconnect_attempts": 1})  # pyright: ignore[reportArgumentType]  # its options are typed one by one
    client.options["max_reconnect_attempts"] = -1


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


def refusal(link: Link, error: Exception) -> BadConfig | Unreachable:
    where, words = shown(link.address), str(error).lower()
    if "authorization" in words or "authentication" in words:
        return BadConfig(
            f"the server at {where} refused the token", "pass the one that `septet host` printed"
        )
    return Unreachable(f"no server answers at {where} ({error or type(error).__name__})", "is it running?")


def shown(address: str) -> str:
    """The address without the secret that may be in it."""
    return re.sub(r"//[^@/]*@", "//", address)


def check_address(address: str) -> None:
    if not re.fullmatch(r"(nats|tls|ws|wss)://([^@/\s]+@)?[^@/\s:]+(:\d+)?/?", address):
        raise BadConfig(f"'{shown(address)}' is no address of a server", "write nats://HOST:PORT")
