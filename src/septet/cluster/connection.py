"""Trying again while the server is away: the client reconnects by itself, and there is nothing else to do."""

import logging
import re
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from time import monotonic
from typing import TypeVar

import anyio
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js.manager import JetStreamManager

from septet.cluster.client import Connection
from septet.cluster.users import inbox
from septet.common.values import Value
from septet.errors import BadConfig, BadUsage, Unreachable

T = TypeVar("T")


async def patiently(attempt: Callable[[], Awaitable[T]]) -> T:
    """Try for ever."""
    while True:
        try:
            return await attempt()
        except nats.errors.TimeoutError:
            continue
        except nats.errors.Error:
            await anyio.sleep(PAUSE)


LOG = logging.getLogger("septet.cluster")
OLDEST = (2, 11)
"""The fence compares the last sequence of a whole chat: older servers reject every append after the first."""
PAUSE = 0.2
"""Seconds between two tries to connect."""
TRIES = 4
ANYONE = "anyone"
"""The name of who has none: a server of somebody else may know tokens only."""
SECRET = re.compile(r"//([^@/]*)@")
ADDRESS = re.compile(
    r"(nats|tls|ws|wss)://(?P<secret>[^@/\s]+@)?(?P<host>\[[0-9a-fA-F:]+\]|[^@/\s:]+)(:\d+)?/?"
)
PENDING = 64 << 20
"""Bytes that may wait while the server is away."""


class Link(Value):
    """Where a server is and what opens it.

    `token` is `NAME:SECRET`, or a bare token of somebody else's server; it may also be part of the address, or in
    `token_file`, which is read whenever it is needed: the host may not have written it yet.
    """

    address: str
    token: str = ""
    token_file: str = ""
    authority: str = ""
    """A file with the certificate that signed the server's (TLS)."""
    certificate: str = ""
    """A file with the server's own certificate, to be trusted as it is (TLS)."""
    name: str = "septet"

    @property
    def encrypted(self) -> bool:
        return bool(self.authority or self.certificate) or self.address.startswith(("tls:", "wss:"))


@asynccontextmanager
async def connect(link: Link, patience: float = 5.0, wait: float = 0.0) -> AsyncGenerator[Connection]:
    """A client that reconnects for ever. A server that is not there yet is waited for `wait` seconds.

    Raises Unreachable or BadConfig where the first connection fails.
    """
    check_address(link)
    client = await first_connection(link, patience, wait)
    try:
        yield client
    finally:
        with anyio.move_on_after(patience, shield=True), suppress(OSError):
            await client.close()


async def first_connection(link: Link, patience: float, wait: float) -> Connection:
    deadline, told = monotonic() + wait, False
    while True:
        secret = secret_of(link)
        try:
            return await open_client(link, patience)
        except Unreachable:
            if monotonic() > deadline:
                raise
            if not told:
                LOG.warning("no server answers at %s yet; waiting for it", shown(link.address))
                told = True
        except BadConfig:
            if secret_of(link) == secret:  # else the host wrote its token while we tried without
                raise
        await anyio.sleep(PAUSE)


async def open_client(link: Link, patience: float) -> Connection:
    user, colon, secret = secret_of(link).partition(":")
    over_web = link.address.startswith(("ws:", "wss:"))
    client, faults = Connection(user if colon else ANYONE, over_web), Faults()
    options: dict[str, object] = {
        "name": link.name,
        "connect_timeout": patience,
        "max_reconnect_attempts": TRIES,  # at first: a wrong address must be said at once
        "reconnect_time_wait": PAUSE,
        "ping_interval": 10,
        "pending_size": PENDING,
        "skip_subject_validation": True,  # names are made of tokens
        "error_cb": faults.note,
        "disconnected_cb": partial(tell_lost, client, link),
        "reconnected_cb": partial(tell_back, link),
        **credentials(client, link, secret if colon else user),
        **({"tls": trust(link)} if link.encrypted else {}),
    }
    try:
        with faults.first:
            await client.connect([shown(link.address)], **options)  # pyright: ignore[reportArgumentType]  # its options are typed one by one
        if faults.first.cancelled_caught:
            raise faults.all[-1]
        client.options["max_reconnect_attempts"] = -1
        await check_server(client, link)
    except BaseException as error:
        with anyio.move_on_after(min(patience, 1.0), shield=True), suppress(OSError):
            await client.close()
        if isinstance(error, (nats.errors.Error, OSError)):
            raise refusal(link, [error, *faults.all]) from error
        raise
    client.refused, faults.user = faults.refused, client.user
    return client


async def tell_lost(client: Connection, link: Link) -> None:
    if client.is_reconnecting:
        LOG.warning("the connection to %s is lost; trying again until it is back", shown(link.address))


async def tell_back(link: Link) -> None:
    LOG.warning("the connection to %s is back", shown(link.address))


class Faults:
    """Every broken connection is reported here; the client mends it by itself."""

    def __init__(self) -> None:
        self.all: list[Exception] = []
        self.refused: list[str] = []
        self.user = ""
        """Who came in; told once that its token has become worthless."""
        self.first = anyio.CancelScope()
        """Left as soon as TLS fails: that does not mend, and the client would wait for an end that never comes."""

    async def note(self, fault: Exception) -> None:
        self.all = [*self.all, fault][-TRIES:]
        if isinstance(fault, ssl.SSLError):
            self.first.cancel()
        if self.user and "authorization" in str(fault).lower():
            LOG.warning("the server does not accept the token of %s any more; was it dismissed?", self.user)
            self.user = ""
        if "permissions violation" in str(fault).lower():
            self.refused.append(str(fault))
            del self.refused[:-TRIES]
            LOG.warning("the server refused: %s", fault)


def credentials(client: Connection, link: Link, secret: str) -> dict[str, object]:
    """What is told to the server; the secret is handed out when it is asked for, and only to who may hear it."""

    def hand_out() -> str:
        if link.encrypted and not client._server_info.get("tls_required"):  # pyright: ignore[reportPrivateUsage]  # nothing public tells
            raise nats.errors.Error("it does not speak TLS")
        return secret

    if client.user != ANYONE:
        return {"user": client.user, "password": hand_out, "inbox_prefix": inbox(client.user)}
    return {"token": hand_out} if secret else {}


def secret_of(link: Link) -> str:
    if link.token:
        return link.token
    if found := SECRET.search(link.address):
        return found[1]
    if not link.token_file:
        return ""
    try:
        return Path(link.token_file).read_text(encoding="utf-8").strip()
    except OSError:  # the host may be started later, or the server may need no token
        return ""


def is_worth_telling(record: logging.LogRecord) -> bool:
    """The client's way of reading streams makes asyncio complain of every TLS connection that ends."""
    return "eof_received" not in record.getMessage()


def trust(link: Link) -> ssl.SSLContext:
    logging.getLogger("asyncio").addFilter(is_worth_telling)
    try:
        context = ssl.create_default_context(cafile=link.certificate or link.authority or None)
    except (OSError, ssl.SSLError) as error:
        raise BadConfig(
            f"{link.certificate or link.authority} holds no certificate ({error})", "name a PEM file"
        ) from error
    if link.certificate:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.check_hostname = False
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


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
    if "does not speak tls" in words:
        return BadConfig(f"the server at {where} does not speak TLS", "is it the right one?")
    if "certificate" in words:
        return BadConfig(
            f"the certificate of the server at {where} is not trusted", "name its signer with --tls-ca"
        )
    reason = str(faults[-1]) or type(faults[-1]).__name__
    return Unreachable(f"no server answers at {where} ({reason})", "is it running, and is the token right?")


def shown(address: str) -> str:
    """The address without the secret that may be in it."""
    return SECRET.sub("//", address)


def check_address(link: Link) -> None:
    found = ADDRESS.fullmatch(link.address)
    if not found:
        raise BadConfig(f"'{shown(link.address)}' is no address of a server", "write nats://HOST:PORT")
    if not link.encrypted and not is_loopback(found["host"]):
        raise BadUsage(
            f"{found['host']} is another machine, and the token would be readable on the way",
            "write tls://HOST:PORT, and name the certificate with --tls-ca where it is your own",
        )


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
