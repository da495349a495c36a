"""Hosts: a server with the streams for chats, the roles that can be on other machines, and their members."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from septet.cluster.blobs import open_nats_blobs
from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats, retry_forever
from septet.cluster.endpoint import NatsEndpoint
from septet.cluster.presence import create_presence_stream
from septet.cluster.server import NatsServer, ServerConfig, add_user, remove_user, serve
from septet.cluster.store import open_nats_store
from septet.cluster.users import Users
from septet.domain.teams import TALKERS
from septet.errors import BadConfig, BadUsage
from septet.ways.table import TEAMS

REMOTE_ROLES = ("planner", "coder", "runner", "reviewer", "manager", "exemplar", *TALKERS)
"""The roles that can be on other machines; the person is where the chat is conducted."""


@asynccontextmanager
async def open_host(config: ServerConfig, replicas: int = 1) -> AsyncGenerator[NatsServer]:
    """Start a server with the streams for chats, ready for members and conductors."""
    async with serve(config) as server:
        async with connect_nats(server.endpoint) as client:
            await create_streams(client, replicas)
        yield server


@asynccontextmanager
async def use_server(endpoint: NatsEndpoint, replicas: int) -> AsyncGenerator[str]:
    """Create the streams on an existing server or cluster; yields its version."""
    async with connect_nats(endpoint) as client:
        await create_streams(client, replicas)
        version = client.connected_server_version
        yield f"{version.major}.{version.minor}.{version.patch}"


async def create_streams(client: Connection, replicas: int = 1) -> None:
    """Create the streams for the log, the blobs and presence; existing ones stay unchanged."""
    await open_nats_store(client, replicas)
    await retry_forever(lambda: open_nats_blobs(client, replicas))
    await retry_forever(lambda: create_presence_stream(client, replicas))


def known_roles() -> Mapping[str, Sequence[str]]:
    """Every role that can be on another machine, with its names in the built-in teams."""
    members = [member for team in TEAMS.values() for member in team.members]
    return {role: sorted({member.name for member in members if member.role == role}) for role in REMOTE_ROLES}


def check_conductor(client: Connection) -> None:
    """Raise BadConfig if the server denied something that only conductors may do."""
    if client.permission_errors:
        raise BadConfig(
            f"this token ({client.user}) belongs to a member and does not permit that",
            "use the conductor's, the file `token` that `septet host` printed",
        )


def check_roles(roles: Sequence[str]) -> None:
    if unknown := [role for role in roles if role not in REMOTE_ROLES]:
        raise BadUsage(f"a member cannot join as '{unknown[0]}'", f"use some of {', '.join(REMOTE_ROLES)}")


def invite_member(folder: Path, name: str, roles: Sequence[str], called: Sequence[str]) -> Path:
    """Add a member who may serve only these roles; returns its token file."""
    check_roles(roles)
    names = known_roles()
    add_user(folder, name, roles, sorted({*called, *(known for role in roles for known in names[role])}))
    return Users(folder).token_file(name)


def dismiss_member(folder: Path, name: str) -> None:
    remove_user(folder, name)
