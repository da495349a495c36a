"""Processes that stay: a host or a member, until a signal stops them in order."""

import signal
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
from msgspec.structs import replace

from septet.cli.options import Options
from septet.cli.output import notify, put
from septet.cli.watching import work
from septet.cli.working import Start, begin, proceed
from septet.errors import BadUsage
from septet.settings.group_chats import each_by_its_own
from septet.settings.meetings import Meeting, adopt, host_folder, listening_name, options_of
from septet.settings.team_files import load_team
from septet.wiring.cluster import Membership, open_cluster, serve_roles, thinking_elsewhere
from septet.wiring.hosts import (
    ServerPlan,
    adopt_server,
    check_roles,
    dismiss_member,
    invite_member,
    known_roles,
    open_host,
)
from septet.wiring.links import Link, link_to
from septet.wiring.staying import settle


@dataclass(frozen=True)
class HostOptions:
    address: str = "127.0.0.1"
    port: int = 4222
    store: Path | None = None
    sync: str = "default"
    tls: tuple[str, str] = ("", "")
    url: str = ""
    replicas: int = 1
    token_file: Path | None = None
    tls_ca: str = ""
    config: Path | None = None


def plan_for(options: HostOptions) -> ServerPlan:
    plan = ServerPlan(
        folder=host_folder(options.store),
        host=options.address,
        port=options.port,
        sync="always" if options.sync == "always" else "2m",
        certificate=str(Path(options.tls[0]).absolute()) if options.tls[0] else "",
        key=str(Path(options.tls[1]).absolute()) if options.tls[1] else "",
        roles=known_roles(),
    )
    if options.config is None:
        return plan
    found = adopt(options.config)
    return replace(plan, host=listening_name(found.hostname), port=found.port)


def run_host(options: HostOptions) -> int:
    if options.url:
        meeting = Meeting(url=options.url, token_file=options.token_file, tls_ca=options.tls_ca)
        return anyio.run(stay, partial(adopting, link_to(meeting), meeting, options))
    return anyio.run(stay, partial(hosting, plan_for(options)))


def run_invite(store: Path | None, name: str, roles: Sequence[str], called: Sequence[str]) -> int:
    """The token's file on stdout: copy it to the member's machine."""
    put(str(invite_member(host_folder(store), name, roles, called)))
    return 0


def run_dismiss(store: Path | None, name: str) -> int:
    dismiss_member(host_folder(store), name)
    return 0


def run_member(meeting: Meeting, roles: Sequence[str], name: str, model: str, unsafe: bool) -> int:
    check_roles(roles)
    if meeting.config is not None:
        found = adopt(meeting.config)
        model = model or next((names[0] for names in (one.model for one in found.team.members) if names), "")
    joining = Membership(
        link=link_to(meeting, roles),
        roles=tuple(roles),
        name=name or socket.gethostname(),
        model=model,
        unsafe=unsafe,
    )
    return anyio.run(stay, partial(membership, joining))


def run_conductor(meeting: Meeting, goal: str | None, name: str, team: str, options: Options) -> int:
    if goal is None and meeting.url and "://" not in meeting.url:
        goal, meeting = meeting.url, replace(meeting, url="")
    spec = load_team(team)
    if meeting.config is not None:
        found = each_by_its_own(adopt(meeting.config).team)
        spec = found if team == "iterate" else spec
    link = link_to(meeting)
    settle()
    spec = spec if options.model else thinking_elsewhere(spec)
    prepare = proceed(name, goal, options) if name else begin(goal, spec, Start(), options)
    return work(prepare, options, partial(open_cluster, link, how=options_of(meeting)))


async def stay(context: Callable[[], AbstractAsyncContextManager[object]]) -> int:
    """Be there until SIGINT or SIGTERM; leaving the context stops everything in order."""
    settle()
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with context():
            async for _ in signals:
                break
    return 0


@asynccontextmanager
async def hosting(plan: ServerPlan) -> AsyncGenerator[Link]:
    async with open_host(plan) as server:
        address, folder = server.address, plan.folder
        (folder / "address").write_text(server.link.address)
        (folder / "certificate").write_text(plan.certificate)
        trust = " --tls-ca SIGNER" if plan.certificate else ""
        put(f"listening on {address}")
        join, token = f"join with: septet join {address} --as coder", folder / "tokens" / "coder"
        put(f"{join} --token-file {token}{trust}")
        conduct = f"conduct with: septet conduct {address} GOAL"
        put(f"{conduct} --token-file {folder / 'token'}{trust}")
        yield server.link


@asynccontextmanager
async def adopting(link: Link, meeting: Meeting, options: HostOptions) -> AsyncGenerator[None]:
    """Somebody else's server, made ready and kept in sight."""
    if options.tls != ("", ""):
        raise BadUsage("--tls is for a server that is started here", "leave it out with --nats")
    async with adopt_server(link, options.replicas) as version:
        how = options_of(meeting)
        put(f"ready on {link.address} (nats-server {version})")
        put(f"join with: septet join {link.address} --as coder{how}")
        put(f"conduct with: septet conduct {link.address} GOAL{how}")
        yield


@asynccontextmanager
async def membership(joining: Membership) -> AsyncGenerator[None]:
    def ready() -> None:
        notify(f"septet: {joining.name} serves {', '.join(joining.roles)}")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_roles, joining, ready)
        yield
        tasks.cancel_scope.cancel()
