"""Connects to a server, with certificates and credentials, and retries while it is away."""

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
from septet.cluster.endpoint import NatsEndpoint, check_address, secret_of, without_secret
from septet.cluster.users import inbox_of
from septet.errors import BadConfig, Unreachable

T = TypeVar("T")


LOG = logging.getLogger("septet.cluster")
MIN_SERVER_VERSION = (2, 11)
"""The fence compares the last sequence of a whole chat: older servers reject every append after the first."""
RETRY_DELAY = 0.2
"""Seconds between two attempts to connect."""
MAX_ATTEMPTS = 4
ANONYMOUS = "anyone"
"""The name of a user without one: another operator's server may use bare tokens."""
MAX_PENDING_BYTES = 64 << 20
"""Bytes that are buffered while the server is away."""


@asynccontextmanager
async def connect_nats(
    endpoint: NatsEndpoint, timeout: float = 5.0, wait: float = 0.0
) -> AsyncGenerator[Connection]:
    """A client that reconnects forever. Waits up to `wait` seconds for a server that is not up yet.

    Raises Unreachable or BadConfig if the first connection fails.
    """
    check_address(endpoint)
    client = await first_connection(endpoint, timeout, wait)
    try:
        yield client
    finally:
        with anyio.move_on_after(timeout, shield=True), suppress(OSError):
            await client.close()


async def first_connection(endpoint: NatsEndpoint, timeout: float, wait: float) -> Connection:
    deadline, warned = monotonic() + wait, False
    while True:
        secret = secret_of(endpoint)
        try:
            return await open_client(endpoint, timeout)
        except Unreachable:
            if monotonic() > deadline:
                raise
            if not warned:
                LOG.warning("no server answers at %s yet; waiting for it", without_secret(endpoint.address))
                warned = True
        except BadConfig:
            if secret_of(endpoint) == secret:  # else the host has written its token meanwhile
                raise
        await anyio.sleep(RETRY_DELAY)


async def open_client(endpoint: NatsEndpoint, timeout: float) -> Connection:
    user, colon, secret = secret_of(endpoint).partition(":")
    over_web = endpoint.address.startswith(("ws:", "wss:"))
    client, faults = Connection(user if colon else ANONYMOUS, over_web), ConnectionErrors()
    options: dict[str, object] = {
        "name": endpoint.name,
        "connect_timeout": timeout,
        "max_reconnect_attempts": MAX_ATTEMPTS,  # at first, so that a wrong address is reported at once
        "reconnect_time_wait": RETRY_DELAY,
        "ping_interval": 10,
        "pending_size": MAX_PENDING_BYTES,
        "skip_subject_validation": True,  # our subjects are made of tokens
        "error_cb": faults.record,
        "disconnected_cb": partial(log_lost, client, endpoint),
        "reconnected_cb": partial(after_reconnect, client, endpoint),
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
        with anyio.move_on_after(min(timeout, 1.0), shield=True), suppress(OSError):
            await client.close()
        if isinstance(error, (nats.errors.Error, OSError)):
            raise connection_error(endpoint, [error, *faults.all]) from error
        raise
    client.permission_errors, faults.user = faults.permission_errors, client.user
    return client


async def log_lost(client: Connection, endpoint: NatsEndpoint) -> None:
    if client.is_reconnecting:
        LOG.warning(
            "the connection to %s is lost; retrying until it is back", without_secret(endpoint.address)
        )


async def after_reconnect(client: Connection, endpoint: NatsEndpoint) -> None:
    LOG.warning("the connection to %s is back", without_secret(endpoint.address))
    for callback in client.on_reconnect:
        callback()


class ConnectionErrors:
    """Collects connection errors; the client reconnects by itself."""

    def __init__(self) -> None:
        self.all: list[Exception] = []
        self.permission_errors: list[str] = []
        self.user = ""
        """The connected user, who is warned once if its token becomes invalid."""
        self.first = anyio.CancelScope()
        """Cancelled when TLS fails: a retry does not help, and the client would wait forever."""

    async def record(self, fault: Exception) -> None:
        self.all = [*self.all, fault][-MAX_ATTEMPTS:]
        if isinstance(fault, ssl.SSLError):
            self.first.cancel()
        if self.user and "authorization" in str(fault).lower():
            LOG.warning("the server does not accept the token of %s any more; was it dismissed?", self.user)
            self.user = ""
        if "permissions violation" in str(fault).lower():
            self.permission_errors.append(str(fault))
            del self.permission_errors[:-MAX_ATTEMPTS]
            LOG.warning("the server refused: %s", fault)


def nats_credentials(client: Connection, endpoint: NatsEndpoint, secret: str) -> dict[str, object]:
    """The client's credentials; the secret is given out on request only, and only over TLS if that is required."""

    def give_secret() -> str:
        if endpoint.uses_tls and not client._server_info.get("tls_required"):  # pyright: ignore[reportPrivateUsage]  # no public attribute
            raise nats.errors.Error("it does not speak TLS")
        return secret

    if client.user != ANONYMOUS:
        return {"user": client.user, "password": give_secret, "inbox_prefix": inbox_of(client.user)}
    return {"token": give_secret} if secret else {}


def is_relevant(record: logging.LogRecord) -> bool:
    """Filter out asyncio's warning at the end of every TLS connection of the client."""
    return "eof_received" not in record.getMessage()


def tls_context(endpoint: NatsEndpoint) -> ssl.SSLContext:
    logging.getLogger("asyncio").addFilter(is_relevant)
    try:
        context = ssl.create_default_context(cafile=endpoint.certificate or endpoint.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise BadConfig(
            f"{endpoint.certificate or endpoint.ca_file} is not a certificate ({error})", "name a PEM file"
        ) from error
    if endpoint.certificate:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.check_hostname = False
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


async def check_server(client: Client, endpoint: NatsEndpoint) -> None:
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


def connection_error(endpoint: NatsEndpoint, faults: list[Exception]) -> BadConfig | Unreachable:
    """The error by the failures of all attempts: a server may close some connections before its reason arrives."""
    where, text = without_secret(endpoint.address), " ".join(map(str, faults)).lower()
    if "authorization" in text or "authentication" in text:
        return BadConfig(
            f"the server at {where} refused the token", "pass the one that `septet host` printed"
        )
    if "does not speak tls" in text:
        return BadConfig(f"the server at {where} does not speak TLS", "is it the right one?")
    if "certificate" in text:
        return BadConfig(
            f"the certificate of the server at {where} is not trusted", "name its signer with --tls-ca"
        )
    reason = str(faults[-1]) or type(faults[-1]).__name__
    return Unreachable(f"no server answers at {where} ({reason})", "is it running, and is the token right?")


async def retry_forever(attempt: Callable[[], Awaitable[T]]) -> T:
    """Retry until it works: while the server is away, the client reconnects by itself."""
    while True:
        try:
            return await attempt()
        except nats.errors.TimeoutError:
            continue
        except nats.errors.Error:
            await anyio.sleep(RETRY_DELAY)
