"""A program's way to the network: none, or a proxy outside that knows where it may go. The sandbox stays closed."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from septet.domain.runs import Job, Network
from septet.sandboxes.environment import launcher
from septet.sandboxes.proxies import Hosts, proxy
from septet.tools.passing import passing_folder

_RELAY = Path(__file__).with_name("relay.py")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@asynccontextmanager
async def reaching(job: Job) -> AsyncGenerator[Job]:
    """The job with its way to the network, which is open while the context lasts."""
    if not job.network or job.network == "off":
        yield job
        return
    with passing_folder("proxy") as place:
        socket = place / "proxy"
        async with proxy(socket, hosts_of(job.network)):
            command = relayed(socket, direct(job.network), *job.command)
            yield replace(job, command=command, readable=(*job.readable, str(place)), network="off")


def relayed(socket: Path, around: str, *command: str) -> tuple[str, ...]:
    """The command with a proxy in its variables; it is asked for everything but the names in `around`."""
    return (*launcher(), relay(), str(socket), around, *command)


def relaying(socket: Path, network: Network) -> str:
    """The same for a Python that is already there, as a piece of code that leaves no names behind."""
    source = f"start({str(socket)!r}, {direct(network)!r})"
    names = "{'__name__': 'relay'}"
    return (
        f"(lambda names: (exec({relay()!r}, names), "
        f"__import__('os').environ.update(eval({source!r}, names))))({names})"
    )


def hosts_of(network: Network) -> Hosts:
    if isinstance(network, str):
        return None if network == "on" else frozenset()
    return frozenset(network)


def direct(network: Network) -> str:
    """Names of the sandbox's own loopback, as far as they do not stand for the machine's by the person's wish."""
    named = {host.partition(":")[0] for host in network} if not isinstance(network, str) else set[str]()
    return ",".join(name for name in _LOOPBACK if name not in named)


@cache
def relay() -> str:
    return _RELAY.read_text()
