"""Many machines: a host with a server, members that joined it, and sessions whose members are elsewhere."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
from msgspec.structs import replace
from nats.aio.client import Client

from septet.agents.runner import leftovers
from septet.buses.connection import Link, connect
from septet.buses.member import Member, Perform, patiently
from septet.buses.nats import NatsBus
from septet.buses.remote import remote
from septet.buses.server import Server, ServerPlan, serve
from septet.buses.turns import LEASE, Order
from septet.buses.work import make_work
from septet.domain.events import Event, Recorded, RunFinished, VersionWritten
from septet.domain.files import FileRef
from septet.domain.reduce import fold
from septet.domain.runs import Job, RunResult
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.errors import BadUsage, NoSandbox
from septet.ports import Agent, EventStore, Listener, Sandbox
from septet.settings.homes import find_home
from septet.stores.nats import open_nats_store
from septet.stores.nats_blobs import open_nats_blobs
from septet.tools.workspace import Workspace
from septet.wiring.models import Models
from septet.wiring.session import Session

SERVED = ("planner", "coder", "runner", "reviewer", "manager", "exemplar")
"""The roles that can be elsewhere; the person's own place is where the chat is conducted."""


RECALLED = 500


@asynccontextmanager
async def open_host(plan: ServerPlan, replicas: int = 1) -> AsyncGenerator[Server]:
    """A server with everything that chats need, ready for members and conductors."""
    async with serve(plan) as server:
        async with connect(server.link) as client:
            await prepare(client, replicas)
        yield server


async def prepare(client: Client, replicas: int = 1) -> None:
    """What lives on the server: the log, the blobs, the queue of turns. What exists stays as it is."""
    await open_nats_store(client, replicas)
    await patiently(lambda: open_nats_blobs(client, replicas))
    await patiently(lambda: make_work(client, replicas))


async def check_existing(link: Link, replicas: int) -> None:
    """Make somebody else's server or cluster ready."""
    async with connect(link) as client:
        await prepare(client, replicas)


class Elsewhere:
    """The sandbox of a conductor whose runner is on another machine."""

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        raise NoSandbox("programs of this chat run on other machines", "let one join as runner")


class ClusterSession(Session):
    """A session whose log is shared and whose members are wherever somebody serves their roles."""

    def __init__(self, shared: Session, client: Client, lease: float = LEASE) -> None:
        super().__init__(shared.home, shared.store, shared.blobs, shared.bus, shared.models)
        self._client = client
        self._lease = lease

    async def sandbox(self, unsafe: bool = False) -> Sandbox:
        return Elsewhere()

    def agent(self, member: RoleSpec, state: State, sandbox: Sandbox, person: Agent | None) -> Agent:
        if member.role in SERVED:
            return remote(self._client, member, self._lease)
        return super().agent(member, state, sandbox, person)

    async def perform(
        self, chat: str, sandbox: Sandbox, person: Agent | None = None
    ) -> AsyncGenerator[Recorded, None]:
        """As at home; the workspace here is kept as an image of what was made elsewhere."""
        state = await self.state(chat)
        async with aclosing(super().perform(chat, sandbox, person)) as performance:
            async for recorded in performance:
                state = fold([recorded], state)
                await self._show(state, recorded.event)
                yield recorded

    async def _show(self, state: State, event: Event) -> None:
        workspace = Workspace(Path(state.workspace))
        if isinstance(event, VersionWritten):
            await workspace.show(event.files, self.blobs, gone=leftovers(state))
        elif isinstance(event, RunFinished):
            kept = [change for change in event.result.changes if change.sha256 and change.kind != "deleted"]
            files = [FileRef(path=one.path, sha256=one.sha256, size=one.size) for one in kept]
            await workspace.show(files, self.blobs, gone={})


@asynccontextmanager
async def open_shared(link: Link, wait: float) -> AsyncGenerator[tuple[Session, Client]]:
    """A session on a server's log; the server may take `wait` seconds to come up."""
    home = find_home()
    async with connect(link, wait=wait) as client:
        store = await open_nats_store(client)
        blobs = await patiently(lambda: open_nats_blobs(client))
        await patiently(lambda: make_work(client))
        async with Models(home, load=blobs.get) as models:
            yield Session(home, store, blobs, NatsBus(client), models), client


@asynccontextmanager
async def open_cluster(link: Link, wait: float = 30.0) -> AsyncGenerator[Session]:
    """The session of one who conducts chats with members elsewhere."""
    async with open_shared(link, wait) as (session, client):
        yield ClusterSession(session, client)


async def serve_roles(
    link: Link, roles: Sequence[str], name: str, unsafe: bool = False, lease: float = LEASE
) -> None:
    """Serve the roles, for ever: the turns of any chat that somebody conducts."""
    if unknown := [role for role in roles if role not in SERVED]:
        raise BadUsage(f"nobody can join as '{unknown[0]}'", f"use some of {', '.join(SERVED)}")
    async with open_shared(link, wait=float("inf")) as (session, client):
        sandbox = await session.sandbox(unsafe) if "runner" in roles else Elsewhere()
        member = Member(client, name, performing(session, sandbox), lease)
        async with anyio.create_task_group() as tasks:
            for role in roles:
                tasks.start_soon(member.serve, role)


class Recall:
    """Chats as this member last saw them: only what has happened since is read. Logs never change behind it."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._known: dict[str, State] = {}

    async def state(self, chat: str) -> State:
        known = self._known.pop(chat, State(chat=chat))
        self._known[chat] = fold(await self._store.read(chat, known.seq), known)
        if len(self._known) > RECALLED:
            del self._known[next(iter(self._known))]
        return self._known[chat]


def performing(session: Session, sandbox: Sandbox) -> Perform:
    """A turn of whoever is asked for, by the same agents as at home, on this machine's own workspace."""

    recall = Recall(session.store)

    async def turn(order: Order) -> AsyncGenerator[Event, None]:
        state = await recall.state(order.chat)
        here = replace(state, workspace=str(session.home.workspaces / order.chat))
        spec = next(member for member in state.team.members if member.name == order.speaker)
        agent = session.agent(spec, here, sandbox, None)
        async with aclosing(agent(here)) as events:
            async for event in events:
                yield event

    return turn
