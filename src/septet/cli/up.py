"""`septet up`: a host, a member for each role and the page on this machine, started and stopped together."""

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from subprocess import DEVNULL

import anyio
from msgspec.structs import replace

from septet.cli.host import HostOptions, open_server, run_until_signal, server_config
from septet.cluster.endpoint import Endpoint
from septet.cluster.hosts import REMOTE_ROLES, ServerConfig
from septet.common.documents import read_text
from septet.domain.teams import TeamSpec
from septet.settings.group_chats import is_group_chat
from septet.settings.team_files import load_team

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


async def keep_running(endpoint: Endpoint, command: Sequence[str]) -> None:
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
