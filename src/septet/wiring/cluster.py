"""Many machines: sessions whose members are elsewhere, and members that serve them."""

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import time

import anyio
from msgspec.structs import replace

from septet.agents.records import viewed
from septet.chat.results import result_of, status
from septet.cluster.blobs import open_nats_blobs
from septet.cluster.bus import NatsBus
from septet.cluster.client import Connection
from septet.cluster.conductor import perform_together
from septet.cluster.connection import connect, retry_forever
from septet.cluster.endpoint import Endpoint, without_secret
from septet.cluster.hosts import REMOTE_ROLES, check_conductor, check_roles
from septet.cluster.member import Cast, Member, taking
from septet.cluster.presence import (
    PresenceBeacon,
    announce_presence,
    is_dead,
    list_participants,
    remove_participant,
)
from septet.cluster.store import open_nats_store
from septet.cluster.turns import LEASE
from septet.common.values import Value
from septet.domain.events import Event, Recorded, RunFinished, VersionWritten
from septet.domain.files import FileRef, Layout
from septet.domain.presence import HEARTBEAT, Participant, other_conductors, silent_conductors
from septet.domain.reduce import fold
from septet.domain.runs import Job, RunResult
from septet.domain.state import State
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.errors import BadConfig, Conflict, LogDamaged, NoModel, NoSandbox
from septet.ports import Agent, EventStore, Listener, Record, RemoteChat, Sandbox
from septet.runtime.conductor import Agents
from septet.runtime.log import Listen, Log
from septet.settings.home import find_home
from septet.team.floor import Floor
from septet.team.layouts import layout_of
from septet.ways.table import floor_for, thinkers
from septet.wiring.models import Models, absolute_name, adapt_to_model
from septet.wiring.session import Session, with_model
from septet.workspace.files import Workspace
from septet.workspace.snapshots import hidden_in, take_snapshot

OWN = "own"
"""The model of who thinks with whatever its machine has."""
SURE = 1.5 * HEARTBEAT
"""Seconds after which one who is there must have given another sign."""


class Elsewhere:
    """The sandbox of a conductor whose runner is on another machine."""

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        raise NoSandbox("programs of this chat run on other machines", "let one join as runner")


class ClusterSession(Session):
    """A session whose log is shared and whose members are wherever somebody serves their roles."""

    def __init__(
        self,
        shared: Session,
        client: Connection,
        sign: PresenceBeacon,
        server: str = "",
        lease: float = LEASE,
    ) -> None:
        super().__init__(shared.home, shared.store, shared.blobs, shared.bus, shared.models)
        self._server = server
        """The words of a command line that lead there: its address, and what opens it."""
        self._client = client
        self._sign = sign
        self.elsewhere = True
        self._lease = lease

    def take(self, chat: str) -> None:
        """On many machines it is by the signs of who is there that a chat is known to be taken."""

    def command(self, chat: str) -> str:
        return f"septet conduct {self._server} --resume {chat}"

    async def sandbox(self, unsafe: bool = False) -> Sandbox:
        return Elsewhere()

    def check_models(self, team: TeamSpec) -> None:
        """Keys are where the members are: only what thinks here is looked at."""
        super().check_models(
            replace(team, members=tuple(one for one in team.members if one.role not in REMOTE_ROLES))
        )

    async def check_prices(self, team: TeamSpec, budget: Budget) -> None:
        """Who thinks with what its own machine has knows the price there."""
        named = tuple(one for one in team.members if one.model != (OWN,))
        await super().check_prices(replace(team, members=named), budget)

    async def fitted(self, team: TeamSpec, model: str) -> TeamSpec:
        """Without a word on the model the members think with their own, and only what thinks here needs one."""
        team = team if model else thinking_elsewhere(team)
        return await super().fitted(team, model) if model or needs_model(team) else with_model(team, "")

    async def people(self) -> Sequence[Participant]:
        return await retry_forever(lambda: list_participants(self._client))

    def is_here(self, member: RoleSpec) -> bool:
        return member.role not in REMOTE_ROLES

    async def orphans(self) -> Sequence[str]:
        """Chats whose conductor fell silent and that nobody has taken over yet."""
        found: list[str] = []
        for gone in silent_conductors(await self.people()):
            left = await unfinished(self.store, gone.presence.chats)
            if not left:
                await remove_participant(self._client, gone)
            found += left
        return found

    async def conduct(self, chat: str, sandbox: Sandbox, person: Agent | None, listen: Listen) -> None:
        """As at home; the workspace here is kept as an image of what was made elsewhere."""

        async def show(recorded: Recorded) -> None:
            nonlocal state
            state = fold([recorded], state)
            await self._show(state, recorded.event)
            await listen(recorded)

        await self._check_alone(chat)
        state = await self._protected(await self.state(chat))
        await self._sign.add_chat(chat)
        self._keep(state)
        try:
            await super().conduct(chat, sandbox, person, show)
        finally:
            self._keep(state)
            await self._sign.remove_chat(chat)

    def _keep(self, state: State) -> None:
        """A note on this machine: the chat is found by `septet list`, although its log is on the server."""
        note = RemoteChat(
            chat=state.chat,
            server=self._server.split(" ")[0],
            command=self.command(state.chat),
            goal=state.goal,
            status=status(state),
            ending=result_of(state).status,
            versions=len(state.versions),
            workspace=state.workspace,
            changed=time(),
        )
        with suppress(OSError):  # the chat itself needs no note
            self.remote_chats.keep(note)

    async def play(self, log: Log, floor: Floor, agents: Agents) -> None:
        await perform_together(self._client, log, floor, agents, self._lease)

    async def _check_alone(self, chat: str) -> None:
        """Who conducts the chat goes on with it. One who died without a word may be taken for it, but gives no sign."""
        waited = False
        while others := other_conductors(await self.people(), chat, self._sign.key):
            alive = [one for one in others if not is_dead(one.presence)]
            if not alive:
                return
            if waited and (sure := [one.presence for one in alive if one.silent < SURE]):
                cause = (
                    f"{sure[0].name} on {sure[0].machine} (process {sure[0].pid}) conducts '{chat}' already"
                )
                raise Conflict(cause, "watch it there, or resume it when that one has stopped")
            waited = True
            await anyio.sleep(SURE)

    async def _show(self, state: State, event: Event) -> None:
        """Files of the person's are not replaced: members elsewhere have not seen them."""
        workspace = Workspace(Path(state.workspace))
        if isinstance(event, VersionWritten):
            layout = layout_of(state, sweep=True)
            await workspace.show(replace(layout, expected=all_contents(state)), self.blobs)
        elif isinstance(event, RunFinished):
            kept = [change for change in event.result.changes if change.sha256 and change.kind != "deleted"]
            files = tuple(FileRef(path=one.path, sha256=one.sha256, size=one.size) for one in kept)
            await workspace.show(Layout(files=files, expected=all_contents(state)), self.blobs)

    async def _protected(self, state: State) -> State:
        """Before anybody has done anything, the folder as it is becomes a snapshot, if it is in use."""
        if not state.existing or state.turns or state.snapshots:
            return state
        workspace = Workspace(Path(state.workspace))
        hidden = await hidden_in(workspace, None, self.blobs)
        kept, _ = await take_snapshot(workspace, hidden, self.blobs, 1, "before the first write")
        return fold(await self.store.append(state.chat, kept, after=state.seq), state)


def all_contents(state: State) -> dict[str, tuple[str, ...]]:
    """Whatever the team and its runs had at each path: an image of what is made elsewhere may be behind."""
    found = [(file.path, file.sha256) for version in state.versions for file in version.files]
    found += [*state.artefacts.items(), *state.stale.items()]
    contents: dict[str, tuple[str, ...]] = {}
    for path, digest in found:
        contents[path] = (*contents.get(path, ()), digest)
    return contents


async def unfinished(store: EventStore, chats: Sequence[str]) -> list[str]:
    """Those that can go on; nobody can go on with one whose log is damaged."""
    found: list[str] = []
    for chat in chats:
        with suppress(LogDamaged):
            if fold(await store.read(chat)).ended is None:
                found.append(chat)
    return found


@asynccontextmanager
async def open_shared(endpoint: Endpoint, wait: float) -> AsyncGenerator[tuple[Session, Connection]]:
    """A session on a server's log; the server may take `wait` seconds to come up."""
    home = find_home()
    async with connect(endpoint, wait=wait) as client:
        store = await open_nats_store(client)
        blobs = await retry_forever(lambda: open_nats_blobs(client))
        async with Models(home, load=blobs.get) as models:
            yield Session(home, store, blobs, NatsBus(client), models), client


@asynccontextmanager
async def open_cluster(
    endpoint: Endpoint, team: TeamSpec | None = None, wait: float = 30.0, how: str = ""
) -> AsyncGenerator[Session]:
    """The session of one who conducts chats with members elsewhere, by default with that team.

    `how` is what a command line says after the address to open the server.
    """
    name = os.environ.get("USER", "") or "somebody"
    async with (
        open_shared(endpoint, wait) as (session, client),
        announce_presence(client, "conductor", name) as sign,
    ):
        await retry_forever(client.flush)  # what the server refuses is told before it answers
        check_conductor(client)
        cluster = ClusterSession(session, client, sign, f"{without_secret(endpoint.address)}{how}")
        if team is not None:
            cluster.teams, cluster.team = {team.name: team, **cluster.teams}, team.name
        yield cluster


class Membership(Value):
    """What one who joins brings along. `model` is what it thinks with where a team leaves that to it."""

    endpoint: Endpoint
    roles: tuple[str, ...]
    name: str
    model: str = ""
    unsafe: bool = False
    lease: float = LEASE


async def serve_roles(joining: Membership, ready: Callable[[], None]) -> None:
    """Serve the roles, for ever: the turns of any chat that somebody conducts. `ready` when the first may come."""
    check_roles(joining.roles)
    async with open_shared(joining.endpoint, wait=float("inf")) as (session, client):
        session.mirror = True
        sandbox = await session.sandbox(joining.unsafe) if "runner" in joining.roles else Elsewhere()
        own = await own_model(session.models, joining.model)
        cast = casting(session, sandbox, joining.roles, own)
        member = Member(client, taking(await open_nats_store(client), cast), joining.lease)
        async with anyio.create_task_group() as tasks:
            for role in joining.roles:
                await tasks.start(member.serve, role)
            await retry_forever(client.flush)  # what the server refuses is told before it answers
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
    """What a member thinks with where it may choose; nothing where there is nothing."""
    try:
        return (absolute_name(name or (await models.choose()).name),)
    except NoModel:
        return ()


def thinking_elsewhere(team: TeamSpec) -> TeamSpec:
    """Members without a model think with what their machines have: the conductor needs no keys."""
    chosen = {
        one.name: replace(one, model=(OWN,))
        for one in thinkers(team)
        if one.role in REMOTE_ROLES and not one.model
    }
    return replace(team, members=tuple(chosen.get(one.name, one) for one in team.members))


def needs_model(team: TeamSpec) -> bool:
    return any(not member.model for member in thinkers(team))


def casting(session: Session, sandbox: Sandbox, roles: Sequence[str], own: tuple[str, ...] = ()) -> Cast:
    """The same agents as at home, on this machine's own workspace."""

    def in_own_folder(state: State) -> State:
        return replace(state, workspace=str(session.home.workspaces / state.chat))

    def turns_of(member: RoleSpec) -> Agent:
        spec = adapt_to_model(replace(member, model=own)) if member.model == (OWN,) else member

        async def turn(state: State, record: Record) -> Event | None:
            here = in_own_folder(state)
            return await session.agent(spec, here, sandbox, None)(here, viewed(record, in_own_folder))

        return turn

    def cast(state: State) -> tuple[Floor, Agents]:
        served = [member for member in state.team.members if member.role in roles]
        return floor_for(state.team, state.budget), {member.name: turns_of(member) for member in served}

    return cast
