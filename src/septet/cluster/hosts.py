"""From what a person said of a server to a link that opens it."""

import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from septet.cluster.address import Meeting, address_of, certificate_of, token_of, usual_token_file
from septet.cluster.blobs import open_nats_blobs
from septet.cluster.client import Connection
from septet.cluster.connection import ADDRESS, Link, connect, is_loopback, patiently
from septet.cluster.presence import make_presence
from septet.cluster.server import Server, ServerPlan, invite, serve, uninvite
from septet.cluster.store import open_nats_store
from septet.cluster.users import Users
from septet.domain.teams import TALKERS
from septet.errors import BadConfig, BadUsage
from septet.team.teams import TEAMS


def link_to(meeting: Meeting, roles: Sequence[str] = ()) -> Link:
    """On one machine the token is found where the host keeps it; the host may be started later."""
    address, token = address_of(meeting), token_of(meeting)
    found = ADDRESS.fullmatch(address)
    here = not token and found is not None and not found["secret"] and is_loopback(found["host"])
    return Link(
        address=address,
        token=token,
        token_file=str(usual_token_file(meeting, roles)) if here else "",
        authority=meeting.tls_ca,
        certificate=certificate_of(meeting),
        name=f"septet on {socket.gethostname()}",
    )


SERVED = ("planner", "coder", "runner", "reviewer", "manager", "exemplar", *TALKERS)
"""The roles that can be elsewhere; the person's own place is where the chat is conducted."""


@asynccontextmanager
async def open_host(plan: ServerPlan, replicas: int = 1) -> AsyncGenerator[Server]:
    """A server with everything that chats need, ready for members and conductors."""
    async with serve(plan) as server:
        async with connect(server.link) as client:
            await prepare(client, replicas)
        yield server


@asynccontextmanager
async def adopt_server(link: Link, replicas: int) -> AsyncGenerator[str]:
    """Somebody else's server or cluster, made ready; gives its version. Its coming and going is told."""
    async with connect(link) as client:
        await prepare(client, replicas)
        version = client.connected_server_version
        yield f"{version.major}.{version.minor}.{version.patch}"


async def prepare(client: Connection, replicas: int = 1) -> None:
    """What lives on the server: the log, the blobs, who is there. What exists stays as it is."""
    await open_nats_store(client, replicas)
    await patiently(lambda: open_nats_blobs(client, replicas))
    await patiently(lambda: make_presence(client, replicas))


def known_roles() -> Mapping[str, Sequence[str]]:
    """Every role that can be elsewhere, with the names that it has in our teams."""
    members = [member for team in TEAMS.values() for member in team.members]
    return {role: sorted({one.name for one in members if one.role == role}) for role in SERVED}


def check_conductor(client: Connection) -> None:
    """Whether the server has let it do what only conductors may."""
    if client.refused:
        raise BadConfig(
            f"this token ({client.user}) is a member's and opens too little for that",
            "use the conductor's, the file `token` that `septet host` printed",
        )


def check_roles(roles: Sequence[str]) -> None:
    if unknown := [role for role in roles if role not in SERVED]:
        raise BadUsage(f"nobody can join as '{unknown[0]}'", f"use some of {', '.join(SERVED)}")


def invite_member(folder: Path, name: str, roles: Sequence[str], called: Sequence[str]) -> Path:
    """The file with the token of a member, who may serve these roles and nothing else."""
    check_roles(roles)
    names = known_roles()
    invite(folder, name, roles, sorted({*called, *(one for role in roles for one in names[role])}))
    return Users(folder).token_file(name)


def dismiss_member(folder: Path, name: str) -> None:
    uninvite(folder, name)
