"""What `host`, `join`, `conduct` and `up` do: start a server, show its status, serve roles, conduct chats."""

import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from subprocess import DEVNULL
from time import time

import anyio
import msgspec
from msgspec.structs import replace

from septet.cli.options import Options
from septet.cli.output import notify, print_text, put_exactly
from septet.cli.start import Start, begin, resume_chat
from septet.cli.watch import run_chat
from septet.cluster.deployment import is_here
from septet.cluster.endpoint import (
    ConnectOptions,
    NatsEndpoint,
    command_line_options,
    endpoint_of,
    host_folder,
    listening_name,
    load_group_chat,
)
from septet.cluster.hosts import (
    REMOTE_ROLES,
    ServerConfig,
    check_roles,
    dismiss_member,
    invite_member,
    known_roles,
    open_host,
    use_server,
)
from septet.cluster.status import ChatStatus, HostStatus, fetch_host_status
from septet.common.documents import read_text
from septet.common.text import pluralize, printable
from septet.domain.presence import Participant
from septet.domain.teams import TeamSpec
from septet.errors import BadUsage
from septet.settings.group_chats import is_group_chat, without_models
from septet.settings.team_files import load_team
from septet.wiring.cluster import Membership, open_cluster, serve_roles
from septet.wiring.handle import settle
from septet.wiring.session import with_own_models

MAX_LINE_LENGTH = 200


def show_status(endpoint: NatsEndpoint, as_json: bool) -> int:
    status = anyio.run(fetch_host_status, endpoint)
    put_exactly(msgspec.json.encode(status).decode()) if as_json else print_text(
        "\n".join(status_lines(status))
    )
    return 0


def status_lines(status: HostStatus) -> Iterable[str]:
    yield f"server   {status.address}, nats-server {status.version}"
    for stream in status.streams:
        copies = f", {stream.replicas} copies, led by {stream.leader}" if stream.replicas > 1 else ""
        yield f"stream   {stream.name}: {pluralize(stream.messages, 'message')}, {stream.bytes / 1e6:.1f} MB{copies}"
    for title, kind in (("members", "member"), ("conductors", "conductor")):
        present = [participant for participant in status.people if participant.presence.kind == kind]
        yield from section(title, [participant_row(participant) for participant in present])
    yield from section("chats", [chat_row(chat) for chat in status.chats])


def section(title: str, rows: list[tuple[str, ...]]) -> Iterable[str]:
    yield ""
    yield title if rows else f"{title}: none"
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def participant_row(participant: Participant) -> tuple[str, ...]:
    presence, silent = participant.presence, f"{participant.silent:.0f} s"
    work = ", ".join(presence.roles) or pluralize(len(presence.chats), "chat")
    return (
        f"  {plain_line(presence.name)}",
        plain_line(work),
        plain_line(f"{presence.machine}, process {presence.pid}"),
        f"{silent} ago" if participant.is_present else f"silent for {silent}",
    )


def chat_row(chat: ChatStatus) -> tuple[str, ...]:
    by = plain_line(", ".join(chat.conductors)) or ("" if chat.ended else "nobody")
    return (
        f"  {plain_line(chat.chat)}",
        plain_line(chat.status),
        f"conducted by {by}" if by else "",
        ago(chat.changed),
    )


def plain_line(text: str) -> str:
    """Return text that members chose as one line without control sequences."""
    return " ".join(printable(text).split())[:MAX_LINE_LENGTH]


def ago(moment: float) -> str:
    seconds = max(0.0, time() - moment)
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago"


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


def server_config(options: HostOptions) -> ServerConfig:
    plan = ServerConfig(
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
    group_chat = load_group_chat(options.config)
    return replace(plan, host=listening_name(group_chat.hostname), port=group_chat.port)


def run_host(options: HostOptions) -> int:
    if options.url:
        server = ConnectOptions(url=options.url, token_file=options.token_file, tls_ca=options.tls_ca)
        return anyio.run(run_until_signal, partial(open_foreign_server, endpoint_of(server), server, options))
    return anyio.run(run_until_signal, partial(open_server, server_config(options)))


def run_invite(store: Path | None, name: str, roles: Sequence[str], called: Sequence[str]) -> int:
    """Print the path of the token's file, to be copied to the member's machine."""
    print_text(str(invite_member(host_folder(store), name, roles, called)))
    return 0


def run_dismiss(store: Path | None, name: str) -> int:
    dismiss_member(host_folder(store), name)
    return 0


def run_member(server: ConnectOptions, roles: Sequence[str], name: str, model: str, unsafe: bool) -> int:
    check_roles(roles)
    if server.config is not None:
        members = load_group_chat(server.config).team.members
        model = model or next((member.model[0] for member in members if member.model), "")
    membership = Membership(
        endpoint=endpoint_of(server, roles),
        roles=tuple(roles),
        name=name or socket.gethostname(),
        model=model,
        unsafe=unsafe,
    )
    return anyio.run(run_until_signal, partial(open_membership, membership))


@dataclass(frozen=True)
class ConductOptions:
    """What is conducted: a new goal, or the chat `name`, answered with `goal`."""

    goal: str | None
    name: str
    team: str
    workspace: Path | None
    action: str


def run_conductor(server: ConnectOptions, conducted: ConductOptions, options: Options) -> int:
    goal, name = conducted.goal, conducted.name
    if goal is None and server.url and "://" not in server.url:
        goal, server = server.url, replace(server, url="")
    spec = load_team(conducted.team)
    if server.config is not None:
        configured = without_models(load_group_chat(server.config).team)
        spec = configured if conducted.team == "iterate" else spec
    endpoint = endpoint_of(server)
    settle()
    spec = spec if options.model.model else with_own_models(spec, is_here)
    start = Start(conducted.workspace)
    prepare = (
        resume_chat(name, goal, options, action=conducted.action)
        if name
        else begin(goal, spec, start, options)
    )
    return run_chat(prepare, options, partial(open_cluster, endpoint, how=command_line_options(server)))


async def run_until_signal(context: Callable[[], AbstractAsyncContextManager[object]]) -> int:
    """Keep the context open until SIGINT or SIGTERM; leaving it stops everything in order."""
    settle()
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with context():
            async for _ in signals:
                break
    return 0


@asynccontextmanager
async def open_server(plan: ServerConfig) -> AsyncGenerator[NatsEndpoint]:
    async with open_host(plan) as server:
        address, folder = server.address, plan.folder
        (folder / "address").write_text(server.endpoint.address)
        (folder / "certificate").write_text(plan.certificate)
        tls_option = " --tls-ca SIGNER" if plan.certificate else ""
        print_text(f"listening on {address}")
        join, token = f"join with: septet join {address} --as coder", folder / "tokens" / "coder"
        print_text(f"{join} --token-file {token}{tls_option}")
        conduct = f"conduct with: septet conduct {address} GOAL"
        print_text(f"{conduct} --token-file {folder / 'token'}{tls_option}")
        yield server.endpoint


@asynccontextmanager
async def open_foreign_server(
    endpoint: NatsEndpoint, server: ConnectOptions, options: HostOptions
) -> AsyncGenerator[None]:
    """Set up a server that we did not start, and monitor it."""
    if options.tls != ("", ""):
        raise BadUsage("--tls is for a server that this command starts", "leave it out with --nats")
    async with use_server(endpoint, options.replicas) as version:
        how = command_line_options(server)
        print_text(f"ready on {endpoint.address} (nats-server {version})")
        print_text(f"join with: septet join {endpoint.address} --as coder{how}")
        print_text(f"conduct with: septet conduct {endpoint.address} GOAL{how}")
        yield


@asynccontextmanager
async def open_membership(membership: Membership) -> AsyncGenerator[None]:
    def ready() -> None:
        notify(f"septet: {membership.name} serves {', '.join(membership.roles)}")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_roles, membership, ready)
        yield
        tasks.cancel_scope.cancel()


RESTART_SECONDS = 1.0
"""Seconds before a process that died is restarted."""


@dataclass(frozen=True)
class UpOptions:
    port: int | None = None
    web_port: int = 8001
    no_web: bool = False
    store: Path | None = None
    model: str = ""
    unsafe_local: bool = False


def run_all(team: str, options: UpOptions) -> int:
    spec = load_team(team)
    config = Path(team) if is_team_file(team) and is_group_chat(read_text(Path(team))) else None
    plan = server_config(HostOptions(store=options.store, config=config))
    plan = replace(
        plan, roles=named_roles(plan, spec), port=plan.port if options.port is None else options.port
    )
    return anyio.run(
        run_until_signal, partial(run_processes, plan, commands_beside_host(plan, spec, config, options))
    )


def is_team_file(team: str) -> bool:
    return Path(team).suffix in (".yaml", ".yml")


def named_roles(plan: ServerConfig, team: TeamSpec) -> dict[str, Sequence[str]]:
    """Add the names that this team gives to its members."""
    return {
        role: sorted({*names, *(member.name for member in team.members if member.role == role)})
        for role, names in plan.roles.items()
    }


def commands_beside_host(
    plan: ServerConfig, team: TeamSpec, config: Path | None, options: UpOptions
) -> list[list[str]]:
    """Return the commands started beside the host; `keep_running` inserts the address after the first word."""
    roles = sorted({member.role for member in team.members} & set(REMOTE_ROLES))
    shared = [
        *(["-m", options.model] if options.model else []),
        *(["--config", str(config.absolute())] if config else []),
    ]
    unsafe = ["--unsafe-local"] if options.unsafe_local else []
    commands = [
        ["join", "--as", role, "--token-file", str(plan.folder / "tokens" / role), *shared, *unsafe]
        for role in roles
    ]
    if not options.no_web:
        page = ["--no-open", "--port", str(options.web_port), "--nats-token-file", str(plan.folder / "token")]
        commands.append(["web", *page, *shared])
    return commands


@asynccontextmanager
async def run_processes(plan: ServerConfig, commands: Sequence[Sequence[str]]) -> AsyncGenerator[None]:
    async with open_server(plan) as endpoint, anyio.create_task_group() as tasks:
        for command in commands:
            tasks.start_soon(keep_running, endpoint, command)
        yield
        tasks.cancel_scope.cancel()


async def keep_running(endpoint: NatsEndpoint, command: Sequence[str]) -> None:
    """Run a process, restart it whenever it dies, and terminate it when we end."""
    name, *rest = command
    where = ["--nats", endpoint.address] if name == "web" else [endpoint.address]
    arguments = [sys.executable, "-m", "septet", name, *where, *rest]
    while True:
        process = await anyio.open_process(
            arguments, stdin=DEVNULL, stdout=None, stderr=None, start_new_session=True
        )
        try:
            await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    process.terminate()
                await process.wait()
                await process.aclose()
        await anyio.sleep(RESTART_SECONDS)
