"""Sessions of a cluster: conductors whose members run on other machines, and members that serve them."""

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import anyio
from msgspec.structs import replace

from septet.agents.records import record_through
from septet.cluster.blobs import open_nats_blobs
from septet.cluster.bus import NatsBus
from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats, retry_forever
from septet.cluster.deployment import ClusterConductor, RemoteSandbox
from septet.cluster.endpoint import (
    NatsEndpoint,
    command_line_options,
    endpoint_of,
    options_in_command,
    without_secret,
)
from septet.cluster.hosts import check_conductor, check_roles
from septet.cluster.member import CastMembers, Member, take_turns
from septet.cluster.presence import announce_presence
from septet.cluster.store import NatsStore, open_nats_store
from septet.cluster.turns import LEASE
from septet.common.temporary import temporary_folder
from septet.common.values import Value
from septet.domain.events import Event, Recorded
from septet.domain.state import State
from septet.domain.teams import RoleSpec, TeamSpec
from septet.errors import BadConfig, NoModel, Unreachable
from septet.ports import Agent, Record, Sandbox
from septet.runtime.conductor import Agents
from septet.settings.home import find_home
from septet.team.floor import Floor
from septet.ways.table import floor_for
from septet.wiring.models import Models, absolute_model_name, adapt_to_model
from septet.wiring.session import OWN_MODEL, Session, agent, local_deployment


@asynccontextmanager
async def open_shared(
    endpoint: NatsEndpoint, wait: float
) -> AsyncGenerator[tuple[Session, NatsStore, Connection]]:
    """A session on a server's log; the server may take `wait` seconds to come up."""
    home = find_home()
    async with connect_nats(endpoint, wait=wait) as client:
        store = await open_nats_store(client)
        blobs = await retry_forever(lambda: open_nats_blobs(client))
        async with Models(home, load=blobs.get) as models:
            yield Session(home, store, blobs, NatsBus(client), models), store, client


@asynccontextmanager
async def open_cluster(
    endpoint: NatsEndpoint, team: TeamSpec | None = None, wait: float = 30.0, how: str = ""
) -> AsyncGenerator[Session]:
    """The session of one who conducts chats with members elsewhere, by default with that team.

    `how` is what a command line says after the address to open the server.
    """
    name = os.environ.get("USER", "") or "somebody"
    async with (
        open_shared(endpoint, wait) as (session, store, client),
        announce_presence(client, "conductor", name) as beacon,
    ):
        await retry_forever(client.flush)  # the server reports refusals before it answers
        check_conductor(client)
        conductor = ClusterConductor(
            client=client,
            beacon=beacon,
            store=store,
            blobs=session.blobs,
            remote_chats=session.remote_chats,
            server=f"{without_secret(endpoint.address)}{how}",
        )
        session.deployment = conductor.deployment()
        if team is not None:
            session.teams, session.default_team = {team.name: team, **session.teams}, team.name
        try:
            yield session
        except Unreachable:
            check_conductor(client)  # a refusal that came late is why nobody answers
            raise


@asynccontextmanager
async def open_server_of(chat: str, command: str, *, holds: bool) -> AsyncGenerator[Session]:
    """The session on the server of the command, which continues the chat. Programs run here: it is about this folder.

    One that `holds` the chat is its conductor meanwhile; Conflict if another one is alive.
    """
    options = options_in_command(command)
    async with open_cluster(endpoint_of(options), how=command_line_options(options)) as session:
        conducting = session.deployment.while_conducting
        here = local_deployment(session.home).open_sandbox
        session.deployment = replace(session.deployment, open_sandbox=here, remote=False)
        async with conducting(chat, ignore) if holds else nullcontext():
            yield session


async def ignore(recorded: Recorded) -> None:
    """Events of a delivery are told by what it returns."""


class Membership(Value):
    """What a joining machine offers. `model` is used by members whose team leaves the choice to the machine."""

    endpoint: NatsEndpoint
    roles: tuple[str, ...]
    name: str
    model: str = ""
    unsafe: bool = False
    lease: float = LEASE


async def serve_roles(joining: Membership, ready: Callable[[], None]) -> None:
    """Serve the roles, for ever: the turns of any chat that somebody conducts. `ready` when the first may come."""
    check_roles(joining.roles)
    with temporary_folder("member") as scratches:  # other members on this machine have copies of their own
        await serve_with_scratches(joining, ready, scratches)


async def serve_with_scratches(joining: Membership, ready: Callable[[], None], scratches: Path) -> None:
    async with open_shared(joining.endpoint, wait=float("inf")) as (session, store, client):
        session.mirror, session.scratches = True, scratches
        sandbox = await session.sandbox(joining.unsafe) if "runner" in joining.roles else RemoteSandbox()
        own = await own_model(session.models, joining.model)
        cast = cast_members(session, sandbox, joining.roles, own)
        member = Member(client, take_turns(store, cast), joining.lease)
        async with anyio.create_task_group() as tasks:
            for role in joining.roles:
                await tasks.start(member.serve, role)
            await retry_forever(client.flush)  # the server reports refusals before it answers
            check_rights(client, joining)
            async with announce_presence(client, "member", joining.name, joining.roles):
                ready()
                await anyio.sleep_forever()


def check_rights(client: Connection, joining: Membership) -> None:
    if client.permission_errors:
        roles = ",".join(joining.roles)
        raise BadConfig(
            f"this token ({client.user}) may not serve {roles}",
            f"ask for one: septet host invite NAME --as {roles}",
        )


async def own_model(models: Models, name: str) -> tuple[str, ...]:
    """The model of a member that may choose; empty if there is none."""
    try:
        return (absolute_model_name(name or (await models.choose()).name),)
    except NoModel:
        return ()


def cast_members(
    session: Session, sandbox: Sandbox, roles: Sequence[str], own: tuple[str, ...] = ()
) -> CastMembers:
    """The same agents as on one machine, with this machine's own workspace."""

    def in_own_folder(state: State) -> State:
        return replace(state, workspace=str(session.home.workspaces / state.chat))

    def turns_of(member: RoleSpec) -> Agent:
        spec = adapt_to_model(replace(member, model=own)) if member.model == (OWN_MODEL,) else member

        async def turn(state: State, record: Record) -> Event | None:
            here = in_own_folder(state)
            scratch = await session.open_scratch(here)
            context = session.member_context(here, sandbox, None, scratch)
            return await agent(spec, context, session.own_agents)(here, record_through(record, in_own_folder))

        return turn

    def cast(state: State) -> tuple[Floor, Agents]:
        served = [member for member in state.team.members if member.role in roles]
        return floor_for(state.team, state.budget), {member.name: turns_of(member) for member in served}

    return cast
