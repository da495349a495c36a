"""Connecting to a server, with certificates and credentials, and trying again while it is away."""

import logging
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import monotonic
from typing import TypeVar

import anyio
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js.manager import JetStreamManager

from septet.cluster.client import Connection
from septet.cluster.endpoint import Endpoint, check_address, secret_of, without_secret
from septet.cluster.users import inbox_of
from septet.errors import BadConfig, Unreachable

T = TypeVar("T")


LOG = logging.getLogger("septet.cluster")
MIN_SERVER_VERSION = (2, 11)
"""The fence compares the last sequence of a whole chat: older servers reject every append after the first."""
PAUSE = 0.2
"""Seconds between two tries to connect."""
TRIES = 4
ANONYMOUS = "anyone"
"""The name of who has none: a server of somebody else may know tokens only."""
PENDING_SIZE = 64 << 20
"""Bytes that may wait while the server is away."""


@asynccontextmanager
async def connect_nats(
    endpoint: Endpoint, patience: float = 5.0, wait: float = 0.0
) -> AsyncGenerator[Connection]:
    """A client that reconnects for ever. A server that is not there yet is waited for `wait` seconds.

    Raises Unreachable or BadConfig where the first connection fails.
    """
    check_address(endpoint)
    client = await first_connection(endpoint, patience, wait)
    try:
        yield client
    finally:
        with anyio.move_on_after(patience, shield=True), suppress(OSError):
            await client.close()


async def first_connection(endpoint: Endpoint, patience: float, wait: float) -> Connection:
    deadline, told = monotonic() + wait, False
    while True:
        secret = secret_of(endpoint)
        try:
            return await open_client(endpoint, patience)
        except Unreachable:
            if monotonic() > deadline:
                raise
            if not told:
                LOG.warning("no server answers at %s yet; waiting for it", without_secret(endpoint.address))
                told = True
        except BadConfig:
            if secret_of(endpoint) == secret:  # else the host wrote its token while we tried without
                raise
        await anyio.sleep(PAUSE)


async def open_client(endpoint: Endpoint, patience: float) -> Connection:
    user, colon, secret = secret_of(endpoint).partition(":")
    over_web = endpoint.address.startswith(("ws:", "wss:"))
    client, faults = Connection(user if colon else ANONYMOUS, over_web), ConnectionErrors()
    options: dict[str, object] = {
        "name": endpoint.name,
        "connect_timeout": patience,
        "max_reconnect_attempts": TRIES,  # at first: a wrong address must be said at once
        "reconnect_time_wait": PAUSE,
        "ping_interval": 10,
        "pending_size": PENDING_SIZE,
        "skip_subject_validation": True,  # names are made of tokens
        "error_cb": faults.record,
        "disconnected_cb": partial(log_lost, client, endpoint),
        "reconnected_cb": partial(log_reconnected, endpoint),
        **nats_credentials(client, endpoint, secret if colon else user),
        **({"tls": tls_context(endpoint)} if endpoint.uses_tls else {}),
    }
    try:
        with faults.first:
            await client.connect([without_secret(endpoint.address)], **options)  # pyright: ignore[reportArgumentType]  # its options are typed one by one
        if faults.first.cancelled_caught:
            raise faults.all[-1]
        client.options["max_reconnect_attempts"] = -1
        await check_server(client, endpoint)
    except BaseException as error:
        with anyio.move_on_after(min(patience, 1.0), shield=True), suppress(OSError):
            await client.close()
        if isinstance(error, (nats.errors.Error, OSError)):
            raise connection_error(endpoint, [error, *faults.all]) from error
        raise
    client.permission_errors, faults.user = faults.permission_errors, client.user
    return client


async def log_lost(client: Connection, endpoint: Endpoint) -> None:
    if client.is_reconnecting:
        LOG.warning(
            "the connection to %s is lost; trying again until it is back", without_secret(endpoint.address)
        )


async def log_reconnected(endpoint: Endpoint) -> None:
    LOG.warning("the connection to %s is back", without_secret(endpoint.address))


class ConnectionErrors:
    """Every broken connection is reported here; the client mends it by itself."""

    def __init__(self) -> None:
        self.all: list[Exception] = []
        self.permission_errors: list[str] = []
        self.user = ""
        """Who came in; told once that its token has become worthless."""
        self.first = anyio.CancelScope()
        """Left as soon as TLS fails: that does not mend, and the client would wait for an end that never comes."""

    async def record(self, fault: Exception) -> None:
        self.all = [*self.all, fault][-TRIES:]
        if isinstance(fault, ssl.SSLError):
            self.first.cancel()
        if self.user and "authorization" in str(fault).lower():
            LOG.warning("the server does not accept the token of %s any more; was it dismissed?", self.user)
            self.user = ""
        if "permissions violation" in str(fault).lower():
            self.permission_errors.append(str(fault))
            del self.permission_errors[:-TRIES]
            LOG.warning("the server refused: %s", fault)


def nats_credentials(client: Connection, endpoint: Endpoint, secret: str) -> dict[str, object]:
    """What is told to the server; the secret is handed out when it is asked for, and only to who may hear it."""

    def hand_out() -> str:
        if endpoint.uses_tls and not client._server_info.get("tls_required"):  # pyright: ignore[reportPrivateUsage]  # nothing public tells
            raise nats.errors.Error("it does not speak TLS")
        return secret

    if client.user != ANONYMOUS:
        return {"user": client.user, "password": hand_out, "inbox_prefix": inbox_of(client.user)}
    return {"token": hand_out} if secret else {}


def is_relevant(record: logging.LogRecord) -> bool:
    """The client's way of reading streams makes asyncio complain of every TLS connection that ends."""
    return "eof_received" not in record.getMessage()


def tls_context(endpoint: Endpoint) -> ssl.SSLContext:
    logging.getLogger("asyncio").addFilter(is_relevant)
    try:
        context = ssl.create_default_context(cafile=endpoint.certificate or endpoint.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise BadConfig(
            f"{endpoint.certificate or endpoint.ca_file} holds no certificate ({error})", "name a PEM file"
        ) from error
    if endpoint.certificate:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.check_hostname = False
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


async def check_server(client: Client, endpoint: Endpoint) -> None:
    version, where = client.connected_server_version, without_secret(endpoint.address)
    if (version.major, version.minor) < MIN_SERVER_VERSION:
        raise BadConfig(
            f"the server at {where} is too old (nats-server {version.major}.{version.minor})",
            f"{'.'.join(map(str, MIN_SERVER_VERSION))} or newer is needed",
        )
    try:
        await JetStreamManager(client).account_info()
    except nats.js.errors.Error as error:
        raise BadConfig(f"the server at {where} has no JetStream", "start it with -js") from error


def connection_error(endpoint: Endpoint, faults: list[Exception]) -> BadConfig | Unreachable:
    """What the tries add up to: a server may hang up before its reason has come through, but not every time."""
    where, words = without_secret(endpoint.address), " ".join(map(str, faults)).lower()
    if "authorization" in words or "authentication" in words:
        return BadConfig(
            f"the server at {where} refused the token", "pass the one that `septet host` printed"
        )
    if "does not speak tls" in words:
        return BadConfig(f"the server at {where} does not speak TLS", "is it the right one?")
    if "certificate" in words:
        return BadConfig(
            f"the certificate of the server at {where} is not trusted", "name its signer with --tls-ca"
        )
    reason = str(faults[-1]) or type(faults[-1]).__name__
    return Unreachable(f"no server answers at {where} ({reason})", "is it running, and is the token right?")


async def retry_forever(attempt: Callable[[], Awaitable[T]]) -> T:
    """While the server is away the client reconnects by itself: there is nothing to do but to try again."""
    while True:
        try:
            return await attempt()
        except nats.errors.TimeoutError:
            continue
        except nats.errors.Error:
            await anyio.sleep(PAUSE)
