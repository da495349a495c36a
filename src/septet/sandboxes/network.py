"""A proxy on a unix socket that lets connections through to named hosts only, or to whatever is public."""

import ipaddress
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from socket import AddressFamily
from urllib.parse import urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream
from msgspec.structs import replace

from septet.common.temporary import temporary_folder
from septet.domain.runs import Job, Network
from septet.sandboxes.environment import launcher

_LONGEST_HEAD = 1 << 16
_REFUSED = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_FAILED = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_THROUGH = b"HTTP/1.1 200 Connection established\r\n\r\n"
Hosts = frozenset[str] | None
"""Names (ports 80 and 443) or `name:port`; None for every public address."""

_FAILURES = (OSError, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request wants to go, and what is sent there first."""

    host: str
    port: int
    first: bytes

    def is_allowed(self, hosts: Hosts) -> bool:
        """By its name on the usual port, or by name and port."""
        if hosts is None:
            return True
        usual = self.port in (80, 443) and self.host in hosts
        return usual or f"{self.host}:{self.port}" in hosts


def parse_target(head: bytes) -> Target | None:
    """From the head of a request: CONNECT host:port, or a whole address in the plain way."""
    line, _, rest = head.partition(b"\r\n")
    parts = line.decode("ascii", "replace").split(" ")
    if len(parts) != 3:
        return None
    method, where, version = parts
    try:
        address = urlsplit(f"//{where}" if method == "CONNECT" else where)
        host, port = (address.hostname or "").lower(), address.port
    except ValueError:
        return None
    if not host or (method != "CONNECT" and address.scheme != "http"):
        return None
    if method == "CONNECT":
        return Target(host, port or 443, b"")
    path = (address.path or "/") + (f"?{address.query}" if address.query else "")
    return Target(host, port or 80, f"{method} {path} {version}\r\n".encode() + rest)


async def resolve_target(target: Target, hosts: Hosts) -> str | None:
    """The address to go to; a name may not lead to this machine or its own network."""
    if hosts is not None and f"{target.host}:{target.port}" in hosts:
        return target.host
    for *_, place in await anyio.getaddrinfo(target.host, target.port):
        if ipaddress.ip_address(place[0]).is_global:
            return str(place[0])
    return None


@asynccontextmanager
async def proxy(socket: Path, hosts: Hosts) -> AsyncGenerator[None]:
    """Serves while the context lasts."""

    async def serve(client: SocketStream) -> None:
        async with client:
            try:
                await _serve(client, hosts)
            except _FAILURES:
                return

    listener = await anyio.create_unix_listener(socket, mode=0o600)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        try:
            yield
        finally:
            group.cancel_scope.cancel()


async def _serve(client: SocketStream, hosts: Hosts) -> None:
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _LONGEST_HEAD:
        head += await _receive(client)
    target = parse_target(head)
    if target is None or not target.is_allowed(hosts):
        await client.send(_REFUSED)
        return
    try:
        address = await resolve_target(target, hosts)
        server = await anyio.connect_tcp(address, target.port) if address else None
    except OSError:
        await client.send(_FAILED)
        return
    if server is None:
        await client.send(_REFUSED)
        return
    async with server:
        await (server.send(target.first) if target.first else client.send(_THROUGH))
        async with anyio.create_task_group() as group:
            group.start_soon(_pass_on, client, server)
            await _pass_on(server, client)
            group.cancel_scope.cancel()


async def _pass_on(source: SocketStream, sink: SocketStream) -> None:
    try:
        while True:
            await sink.send(await _receive(source))
    except anyio.EndOfStream:
        with suppress(*_FAILURES):
            await sink.send_eof()
    except _FAILURES:
        return


async def _receive(source: SocketStream) -> bytes:
    """A unix stream is only asked when it has something: cancelled while it waits, it fails aloud."""
    if source.extra(SocketAttribute.family) == AddressFamily.AF_UNIX:
        await anyio.wait_readable(source.extra(SocketAttribute.raw_socket))
    return await source.receive()


_RELAY = Path(__file__).with_name("inside") / "relay.py"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@asynccontextmanager
async def open_network(job: Job) -> AsyncGenerator[Job]:
    """The job with its way to the network, which is open while the context lasts."""
    if not job.network or job.network == "off":
        yield job
        return
    with temporary_folder("proxy") as place:
        socket = place / "proxy"
        async with proxy(socket, allowed_hosts(job.network)):
            command = relay_command(socket, direct_names(job.network), *job.command)
            yield replace(job, command=command, readable=(*job.readable, str(place)), network="off")


def relay_command(socket: Path, around: str, *command: str) -> tuple[str, ...]:
    """The command with a proxy in its variables; it is asked for everything but the names in `around`."""
    return (*launcher(), relay_source(), str(socket), around, *command)


def relay_code(socket: Path, network: Network) -> str:
    """The same for a Python that is already there, as a piece of code that leaves no names behind."""
    source = f"start({str(socket)!r}, {direct_names(network)!r})"
    names = "{'__name__': 'relay'}"
    return (
        f"(lambda names: (exec({relay_source()!r}, names), "
        f"__import__('os').environ.update(eval({source!r}, names))))({names})"
    )


def allowed_hosts(network: Network) -> Hosts:
    if isinstance(network, str):
        return None if network == "on" else frozenset()
    return frozenset(network)


def direct_names(network: Network) -> str:
    """Names of the sandbox's own loopback, as far as they do not stand for the machine's by the person's wish."""
    named = {host.partition(":")[0] for host in network} if not isinstance(network, str) else set[str]()
    return ",".join(name for name in _LOOPBACK if name not in named)


@cache
def relay_source() -> str:
    return _RELAY.read_text()
