"""Hosts: a server with everything that chats need, the roles that can be elsewhere, and who may serve them."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from septet.cluster.blobs import open_nats_blobs
from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats, retry_forever
from septet.cluster.endpoint import Endpoint
from septet.cluster.presence import create_presence_stream
from septet.cluster.server import NatsServer, ServerConfig, add_user, remove_user, serve
from septet.cluster.store import open_nats_store
from septet.cluster.users import Users
from septet.domain.teams import TALKERS
from septet.errors import BadConfig, BadUsage
from septet.ways.table import TEAMS

REMOTE_ROLES = ("planner", "coder", "runner", "reviewer", "manager", "exemplar", *TALKERS)
"""The roles that can be elsewhere; the person's own place is where the chat is conducted."""


@asynccontextmanager
async def open_host(config: ServerConfig, replicas: int = 1) -> AsyncGenerator[NatsServer]:
    """A server with everything that chats need, ready for members and conductors."""
    async with serve(config) as server:
        async with connect_nats(server.endpoint) as client:
            await create_streams(client, replicas)
        yield server


@asynccontextmanager
async def use_server(endpoint: Endpoint, replicas: int) -> AsyncGenerator[str]:
    """Somebody else's server or cluster, made ready; gives its version. Its coming and going is told."""
    async with connect_nats(endpoint) as client:
        await create_streams(client, replicas)
        version = client.connected_server_version
        yield f"{version.major}.{version.minor}.{version.patch}"


async def create_streams(client: Connection, replicas: int = 1) -> None:
    """What lives on the server: the log, the blobs, who is there. What exists stays as it is."""
    await open_nats_store(client, replicas)
    await retry_forever(lambda: open_nats_blobs(client, replicas))
    await retry_forever(lambda: create_presence_stream(client, replicas))


def known_roles() -> Mapping[str, Sequence[str]]:
    """Every role that can be elsewhere, with the names that it has in our teams."""
    members = [member for team in TEAMS.values() for member in team.members]
    return {role: sorted({one.name for one in members if one.role == role}) for role in REMOTE_ROLES}


def check_conductor(client: Connection) -> None:
    """Whether the server has let it do what only conductors may."""
    if client.permission_errors:
        raise BadConfig(
            f"this token ({client.user}) is a member's and opens too little for that",
            "use the conductor's, the file `token` that `septet host` printed",
        )


def check_roles(roles: Sequence[str]) -> None:
    if unknown := [role for role in roles if role not in REMOTE_ROLES]:
        raise BadUsage(f"nobody can join as '{unknown[0]}'", f"use some of {', '.join(REMOTE_ROLES)}")


def invite_member(folder: Path, name: str, roles: Sequence[str], called: Sequence[str]) -> Path:
    """The file with the token of a member, who may serve these roles and nothing else."""
    check_roles(roles)
    names = known_roles()
    add_user(folder, name, roles, sorted({*called, *(one for role in roles for one in names[role])}))
    return Users(folder).token_file(name)


def dismiss_member(folder: Path, name: str) -> None:
    remove_user(folder, name)
