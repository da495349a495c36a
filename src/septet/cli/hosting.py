"""Processes that stay: a host, a member, or all of them, until a signal stops them in order."""

import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from subprocess import DEVNULL

import anyio

from septet.cli.live import write_line
from septet.cli.options import Options
from septet.cli.working import Start, begin, proceed, work
from septet.errors import BadConfig
from septet.settings.homes import find_home
from septet.settings.team_files import load_team
from septet.wiring.cluster import SERVED, Link, ServerPlan, open_cluster, open_host, serve_roles

PAUSE = 1.0
"""Seconds before a member that died is started again."""


def link_to(url: str, token_file: Path | None, authority: str) -> Link:
    """The server at `url` and the token that opens it."""
    token = os.environ.get("SEPTET_TOKEN", "")
    if token_file is not None:
        try:
            token = token_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            cause = f"{token_file} cannot be read ({error.strerror})"
            raise BadConfig(cause, "name the token file that `septet host` printed") from error
    return Link(address=url, token=token, authority=authority, name=f"septet on {socket.gethostname()}")


def plan_for(store: Path | None, port: int, address: str, sync: str, tls: tuple[str, str]) -> ServerPlan:
    return ServerPlan(
        folder=(store or find_home().data / "host").expanduser().absolute(),
        host=address,
        port=port,
        sync="always" if sync == "always" else "2m",
        certificate=tls[0],
        key=tls[1],
    )


def run_host(plan: ServerPlan) -> int:
    return anyio.run(stay, partial(hosting, plan))


def run_member(link: Link, roles: Sequence[str], name: str, unsafe: bool) -> int:
    return anyio.run(stay, partial(membership, link, roles, name or socket.gethostname(), unsafe))


def run_all(plan: ServerPlan, team: str, unsafe: bool) -> int:
    roles = sorted({member.role for member in load_team(team).members} & set(SERVED))
    return anyio.run(stay, partial(everything, plan, roles, unsafe))


def run_conductor(link: Link, goal: str | None, name: str, team: str, options: Options) -> int:
    prepare = proceed(name, goal, options) if name else begin(goal, load_team(team), Start(), options)
    return work(prepare, options, partial(open_cluster, link))


async def stay(context: Callable[[], AbstractAsyncContextManager[object]]) -> int:
    """Be there until SIGINT or SIGTERM; leaving the context stops everything in order."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with context():
            async for _ in signals:
                break
    return 0


@asynccontextmanager
async def hosting(plan: ServerPlan) -> AsyncGenerator[Link]:
    async with open_host(plan) as server:
        token = plan.folder / "token"
        write_line(sys.stdout, f"listening on {server.link.address}")
        write_line(
            sys.stdout, f"join with: septet join {server.link.address} --as coder --token-file {token}"
        )
        yield server.link


@asynccontextmanager
async def membership(link: Link, roles: Sequence[str], name: str, unsafe: bool) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_roles, link, roles, name, unsafe)
        write_line(sys.stderr, f"septet: {name} serves {', '.join(roles)}")
        yield
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def everything(plan: ServerPlan, roles: Sequence[str], unsafe: bool) -> AsyncGenerator[None]:
    async with hosting(plan) as link, anyio.create_task_group() as tasks:
        for role in roles:
            tasks.start_soon(keep_member, link, role, plan.folder / "token", unsafe)
        yield
        tasks.cancel_scope.cancel()


async def keep_member(link: Link, role: str, token: Path, unsafe: bool) -> None:
    """A process that serves the role, started again whenever it dies."""
    command = [sys.executable, "-m", "septet", "join", link.address, "--as", role, "--token-file", str(token)]
    while True:
        process = await anyio.open_process(
            [*command, *(["--unsafe-local"] if unsafe else [])], stdin=DEVNULL, stdout=None, stderr=None
        )
        try:
            await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    process.terminate()
                await process.wait()
        await anyio.sleep(PAUSE)
