"""An HTTP proxy on a unix socket that connects only to named hosts, or only to public addresses."""

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

_MAX_HEAD_BYTES = 1 << 16
_FORBIDDEN = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_BAD_GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_CONNECTED = b"HTTP/1.1 200 Connection established\r\n\r\n"
Hosts = frozenset[str] | None
"""Names (ports 80 and 443) or `name:port`; None for every public address."""

_STREAM_ERRORS = (OSError, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


@dataclass(frozen=True, slots=True)
class Target:
    """The destination of a request, and the bytes to send there first."""

    host: str
    port: int
    first: bytes

    def is_allowed(self, hosts: Hosts) -> bool:
        """Whether the hosts include its name (for the usual ports) or its name and port."""
        if hosts is None:
            return True
        usual = self.port in (80, 443) and self.host in hosts
        return usual or f"{self.host}:{self.port}" in hosts


def parse_target(head: bytes) -> Target | None:
    """The destination in the head of a request: CONNECT host:port, or an absolute http address."""
    line, _, rest = head.partition(b"\r\n")
    parts = line.decode("ascii", "replace").split(" ")
    if len(parts) != 3:
        return None
    method, destination, version = parts
    try:
        address = urlsplit(f"//{destination}" if method == "CONNECT" else destination)
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
    """The address to connect to; None if the name resolves only to this machine or its private network."""
    if hosts is not None and f"{target.host}:{target.port}" in hosts:
        return target.host
    for *_, address in await anyio.getaddrinfo(target.host, target.port):
        if ipaddress.ip_address(address[0]).is_global:
            return str(address[0])
    return None


@asynccontextmanager
async def proxy(socket: Path, hosts: Hosts) -> AsyncGenerator[None]:
    """Serve until the context ends."""

    async def serve(client: SocketStream) -> None:
        async with client:
            try:
                await _serve(client, hosts)
            except _STREAM_ERRORS:
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
    while b"\r\n\r\n" not in head and len(head) < _MAX_HEAD_BYTES:
        head += await _receive(client)
    target = parse_target(head)
    if target is None or not target.is_allowed(hosts):
        await client.send(_FORBIDDEN)
        return
    try:
        address = await resolve_target(target, hosts)
        server = await anyio.connect_tcp(address, target.port) if address else None
    except OSError:
        await client.send(_BAD_GATEWAY)
        return
    if server is None:
        await client.send(_FORBIDDEN)
        return
    async with server:
        await (server.send(target.first) if target.first else client.send(_CONNECTED))
        async with anyio.create_task_group() as group:
            group.start_soon(_copy, client, server)
            await _copy(server, client)
            group.cancel_scope.cancel()


async def _copy(source: SocketStream, sink: SocketStream) -> None:
    try:
        while True:
            await sink.send(await _receive(source))
    except anyio.EndOfStream:
        with suppress(*_STREAM_ERRORS):
            await sink.send_eof()
    except _STREAM_ERRORS:
        return


async def _receive(source: SocketStream) -> bytes:
    """Receive; wait for a unix stream to be readable first, because a cancelled receive on it logs an error."""
    if source.extra(SocketAttribute.family) == AddressFamily.AF_UNIX:
        await anyio.wait_readable(source.extra(SocketAttribute.raw_socket))
    return await source.receive()


_RELAY = Path(__file__).with_name("inside") / "relay.py"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@asynccontextmanager
async def open_network(job: Job) -> AsyncGenerator[Job]:
    """The job with a relay to a proxy that runs until the context ends."""
    if not job.network or job.network == "off":
        yield job
        return
    with temporary_folder("proxy") as folder:
        socket = folder / "proxy"
        async with proxy(socket, allowed_hosts(job.network)):
            command = relay_command(socket, direct_names(job.network), *job.command)
            yield replace(job, command=command, readable=(*job.readable, str(folder)), network="off")


def relay_command(socket: Path, direct: str, *command: str) -> tuple[str, ...]:
    """The command with a proxy in its variables, used for everything but the names in `direct`."""
    return (*launcher(), relay_source(), str(socket), direct, *command)


def relay_code(socket: Path, network: Network) -> str:
    """The same for a running Python, as code that defines no names."""
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
    """The names of the sandbox's own loopback, except those for which the person allowed the machine's."""
    allowed = {host.partition(":")[0] for host in network} if not isinstance(network, str) else set[str]()
    return ",".join(name for name in _LOOPBACK if name not in allowed)


@cache
def relay_source() -> str:
    return _RELAY.read_text()
