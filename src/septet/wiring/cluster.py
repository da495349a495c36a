"""Many machines: a host with a server, members that joined it, and sessions whose members are elsewhere."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
from msgspec.structs import replace
from nats.aio.client import Client

from septet.agents.runner import leftovers
from septet.buses.connection import Link, connect
from septet.buses.member import Member
from septet.buses.nats import NatsBus
from septet.buses.patience import patiently
from septet.buses.recall import Cast, taking
from septet.buses.remote import Line, open_line, remote
from septet.buses.server import Server, ServerPlan, serve
from septet.buses.turns import LEASE
from septet.domain.events import Event, Recorded, RunFinished, VersionWritten
from septet.domain.files import FileRef
from septet.domain.reduce import fold
from septet.domain.runs import Job, RunResult
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.errors import BadUsage, NoSandbox
from septet.ports import Agent, Listener, Sandbox, Speaker
from septet.settings.homes import find_home
from septet.stores.nats import open_nats_store
from septet.stores.nats_blobs import open_nats_blobs
from septet.tools.workspace import Workspace
from septet.wiring.models import Models
from septet.wiring.session import Session

SERVED = ("planner", "coder", "runner", "reviewer", "manager", "exemplar")
"""The roles that can be elsewhere; the person's own place is where the chat is conducted."""


@asynccontextmanager
async def open_host(plan: ServerPlan, replicas: int = 1) -> AsyncGenerator[Server]:
    """A server with everything that chats need, ready for members and conductors."""
    async with serve(plan) as server:
        async with connect(server.link) as client:
            await prepare(client, replicas)
        yield server


async def prepare(client: Client, replicas: int = 1) -> None:
    """What lives on the server: the log and the blobs. What exists stays as it is."""
    await open_nats_store(client, replicas)
    await patiently(lambda: open_nats_blobs(client, replicas))


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
        self._lines: dict[str, Line] = {}

    async def sandbox(self, unsafe: bool = False) -> Sandbox:
        return Elsewhere()

    def agent(self, member: RoleSpec, state: State, sandbox: Sandbox, person: Agent | None) -> Speaker:
        if member.role in SERVED:
            return remote(self._lines[state.chat], member)
        return super().agent(member, state, sandbox, person)

    async def perform(
        self, chat: str, sandbox: Sandbox, person: Agent | None = None
    ) -> AsyncGenerator[Recorded, None]:
        """As at home; the workspace here is kept as an image of what was made elsewhere."""
        state = await self.state(chat)
        async with open_line(self._client, self.store, chat, state.seq, self._lease) as line:
            self._lines[chat] = line
            async with aclosing(super().perform(chat, sandbox, person)) as performance:
                async for recorded in performance:
                    line.note(recorded)
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
        member = Member(client, taking(session.store, casting(session, sandbox)), lease)
        async with anyio.create_task_group() as tasks:
            for role in roles:
                tasks.start_soon(member.serve, role)


def casting(session: Session, sandbox: Sandbox) -> Cast:
    """The same agents as at home, on this machine's own workspace."""

    def cast(state: State, name: str) -> Speaker:
        here = replace(state, workspace=str(session.home.workspaces / state.chat))
        spec = next(member for member in state.team.members if member.name == name)
        agent = session.agent(spec, here, sandbox, None)
        return lambda known: agent(replace(known, workspace=here.workspace))

    return cast
