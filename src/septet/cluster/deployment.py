"""Chats conducted here with members on other machines: checks for other conductors, mirrors files to this machine."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import time

import anyio
from msgspec.structs import replace

from septet.chat.results import result_of, status
from septet.cluster.client import Connection
from septet.cluster.conductor import perform_with_remote_members
from septet.cluster.connection import retry_forever
from septet.cluster.hosts import REMOTE_ROLES
from septet.cluster.presence import PresenceBeacon, is_dead, list_participants, remove_participant
from septet.cluster.turns import LEASE
from septet.domain.events import Event, Recorded, RunFinished, VersionWritten
from septet.domain.files import FileRef, Layout
from septet.domain.presence import HEARTBEAT, Participant, other_conductors, silent_conductors
from septet.domain.reduce import fold
from septet.domain.runs import Job, RunResult
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.errors import Conflict, LogDamaged, NoSandbox
from septet.ports import Blobs, EventStore, Listener, RemoteChat, Sandbox
from septet.runtime.conductor import Agents
from septet.runtime.deployment import Deployment
from septet.runtime.log import Listen, Log
from septet.stores.remote_chats import RemoteChats
from septet.team.floor import Floor
from septet.team.layouts import layout_of
from septet.workspace.files import Workspace
from septet.workspace.snapshots import hidden_in, take_snapshot

ALIVE_SECONDS = 1.5 * HEARTBEAT
"""A living participant sends another heartbeat within this many seconds."""


class RemoteSandbox:
    """The sandbox of a conductor whose runner is on another machine."""

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        raise NoSandbox("programs of this chat run on other machines", "let one join as runner")


class NoLocks:
    """No locks: in a cluster, presence shows who conducts a chat."""

    def acquire(self, chat: str) -> None: ...

    def release(self, chat: str) -> None: ...

    def close(self) -> None: ...


@dataclass(kw_only=True)
class ClusterConductor:
    """Conducts chats whose log is on a server and whose members may be on any machine."""

    client: Connection
    beacon: PresenceBeacon
    store: EventStore
    blobs: Blobs
    remote_chats: RemoteChats
    server: str = ""
    """The command-line arguments for this server: its address and credentials."""
    lease: float = LEASE

    def deployment(self) -> Deployment:
        return Deployment(
            locks=NoLocks(),
            open_sandbox=open_remote_sandbox,
            remote=True,
            is_here=is_here,
            play=self.play,
            while_conducting=self.while_conducting,
            command=self.command,
            participants=self.participants,
            orphans=self.orphans,
        )

    async def play(self, log: Log, floor: Floor, agents: Agents) -> None:
        await perform_with_remote_members(self.client, log, floor, agents, self.lease)

    def command(self, chat: str) -> str:
        return f"septet conduct {self.server} --resume {chat}"

    async def participants(self) -> Sequence[Participant]:
        return await retry_forever(lambda: list_participants(self.client))

    async def orphans(self) -> Sequence[str]:
        """Unfinished chats whose conductor fell silent, not taken over yet."""
        orphans: list[str] = []
        for gone in silent_conductors(await self.participants()):
            unfinished = await unfinished_chats(self.store, gone.presence.chats)
            if not unfinished:
                await remove_participant(self.client, gone)
            orphans += unfinished
        return orphans

    @asynccontextmanager
    async def while_conducting(self, chat: str, listen: Listen) -> AsyncGenerator[Listen]:
        """Announce the chat and mirror remote changes to the workspace here."""

        async def mirror(recorded: Recorded) -> None:
            nonlocal state
            state = fold([recorded], state)
            await mirror_event(state, recorded.event, self.blobs)
            await listen(recorded)

        await self._check_alone(chat)
        state = await self._protect_folder(fold(await self.store.read(chat)))
        await self.beacon.add_chat(chat)
        self._save_note(state)
        try:
            yield mirror
        finally:
            self._save_note(state)
            await self.beacon.remove_chat(chat)

    def _save_note(self, state: State) -> None:
        """Write a note on this machine, so that `septet list` shows the chat although its log is on the server."""
        note = RemoteChat(
            chat=state.chat,
            server=self.server.split(" ")[0],
            command=self.command(state.chat),
            goal=state.goal,
            status=status(state),
            ending=result_of(state).status,
            versions=len(state.work.versions),
            workspace=state.workspace,
            changed=time(),
        )
        with suppress(OSError):  # the chat works without the note
            self.remote_chats.save(note)

    async def _check_alone(self, chat: str) -> None:
        """Raise Conflict if another conductor of the chat is alive; a dead one sends no more heartbeats."""
        waited = False
        while others := other_conductors(await self.participants(), chat, self.beacon.key):
            alive = [other for other in others if not is_dead(other.presence)]
            if not alive:
                return
            if waited and (active := [other.presence for other in alive if other.silent < ALIVE_SECONDS]):
                first = active[0]
                cause = f"{first.name} on {first.machine} (process {first.pid}) conducts '{chat}' already"
                raise Conflict(cause, "watch it there, or resume it when that one has stopped")
            waited = True
            await anyio.sleep(ALIVE_SECONDS)

    async def _protect_folder(self, state: State) -> State:
        """Before the first turn, take a snapshot of a folder that exists already."""
        if not state.existing or state.floor.turn_counts or state.work.snapshots:
            return state
        workspace = Workspace(Path(state.workspace))
        hidden = await hidden_in(workspace, None, self.blobs)
        snapshot, _ = await take_snapshot(workspace, hidden, self.blobs, 1, "before the first write")
        return fold(await self.store.append(state.chat, snapshot, after=state.seq), state)


def is_here(member: RoleSpec) -> bool:
    return member.role not in REMOTE_ROLES


async def open_remote_sandbox(unsafe: bool) -> Sandbox:
    return RemoteSandbox()


async def mirror_event(state: State, event: Event, blobs: Blobs) -> None:
    """Apply a remote change to the workspace here. The person's own files stay: members have not seen them."""
    workspace = Workspace(Path(state.workspace))
    if isinstance(event, VersionWritten):
        layout = layout_of(state, sweep=True)
        await workspace.write_layout(replace(layout, replaceable=all_contents(state)), blobs)
    elif isinstance(event, RunFinished):
        written = [change for change in event.result.changes if change.sha256 and change.kind != "deleted"]
        files = tuple(FileRef(path=change.path, sha256=change.sha256, size=change.size) for change in written)
        await workspace.write_layout(Layout(files=files, replaceable=all_contents(state)), blobs)


def all_contents(state: State) -> dict[str, tuple[str, ...]]:
    """All contents that the team and its runs had at each path: the mirror here may be behind."""
    files = [(file.path, file.sha256) for version in state.work.versions for file in version.files]
    files += [*state.work.artefacts.items(), *state.work.stale_artefacts.items()]
    contents: dict[str, tuple[str, ...]] = {}
    for path, digest in files:
        contents[path] = (*contents.get(path, ()), digest)
    return contents


async def unfinished_chats(store: EventStore, chats: Sequence[str]) -> list[str]:
    """The chats that can continue; one with a damaged log cannot."""
    unfinished: list[str] = []
    for chat in chats:
        with suppress(LogDamaged):
            if fold(await store.read(chat)).ended is None:
                unfinished.append(chat)
    return unfinished
