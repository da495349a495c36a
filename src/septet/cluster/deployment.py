"""Chats that are conducted here with members on other machines: who else conducts them, and what is shown here."""

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

CERTAIN = 1.5 * HEARTBEAT
"""Seconds after which one who is there must have given another sign."""


class RemoteSandbox:
    """The sandbox of a conductor whose runner is on another machine."""

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        raise NoSandbox("programs of this chat run on other machines", "let one join as runner")


class NoLocks:
    """On many machines it is by the signs of who is there that a chat is known to be taken."""

    def acquire(self, chat: str) -> None: ...

    def release(self, chat: str) -> None: ...

    def close(self) -> None: ...


@dataclass(kw_only=True)
class ClusterConductor:
    """One who conducts chats whose log is shared and whose members are wherever somebody serves their roles."""

    client: Connection
    beacon: PresenceBeacon
    store: EventStore
    blobs: Blobs
    remote_chats: RemoteChats
    server: str = ""
    """The words of a command line that lead there: its address, and what opens it."""
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
        """Chats whose conductor fell silent and that nobody has taken over yet."""
        found: list[str] = []
        for gone in silent_conductors(await self.participants()):
            left = await unfinished_chats(self.store, gone.presence.chats)
            if not left:
                await remove_participant(self.client, gone)
            found += left
        return found

    @asynccontextmanager
    async def while_conducting(self, chat: str, listen: Listen) -> AsyncGenerator[Listen]:
        """The workspace here is kept as an image of what was made elsewhere."""

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
        """A note on this machine: the chat is found by `septet list`, although its log is on the server."""
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
        with suppress(OSError):  # the chat itself needs no note
            self.remote_chats.save(note)

    async def _check_alone(self, chat: str) -> None:
        """Who conducts the chat goes on with it. One who died without a word may be taken for it, but gives no sign."""
        waited = False
        while others := other_conductors(await self.participants(), chat, self.beacon.key):
            alive = [one for one in others if not is_dead(one.presence)]
            if not alive:
                return
            if waited and (certain := [one.presence for one in alive if one.silent < CERTAIN]):
                first = certain[0]
                cause = f"{first.name} on {first.machine} (process {first.pid}) conducts '{chat}' already"
                raise Conflict(cause, "watch it there, or resume it when that one has stopped")
            waited = True
            await anyio.sleep(CERTAIN)

    async def _protect_folder(self, state: State) -> State:
        """Before anybody has done anything, the folder as it is becomes a snapshot, if it is in use."""
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
    """What was made elsewhere, in the workspace here. Files of the person's stay: members have not seen them."""
    workspace = Workspace(Path(state.workspace))
    if isinstance(event, VersionWritten):
        layout = layout_of(state, sweep=True)
        await workspace.write_layout(replace(layout, replaceable=all_contents(state)), blobs)
    elif isinstance(event, RunFinished):
        written = [change for change in event.result.changes if change.sha256 and change.kind != "deleted"]
        files = tuple(FileRef(path=one.path, sha256=one.sha256, size=one.size) for one in written)
        await workspace.write_layout(Layout(files=files, replaceable=all_contents(state)), blobs)


def all_contents(state: State) -> dict[str, tuple[str, ...]]:
    """Whatever the team and its runs had at each path: an image of what is made elsewhere may be behind."""
    found = [(file.path, file.sha256) for version in state.work.versions for file in version.files]
    found += [*state.work.artefacts.items(), *state.work.stale_artefacts.items()]
    contents: dict[str, tuple[str, ...]] = {}
    for path, digest in found:
        contents[path] = (*contents.get(path, ()), digest)
    return contents


async def unfinished_chats(store: EventStore, chats: Sequence[str]) -> list[str]:
    """Those that can go on; nobody can go on with one whose log is damaged."""
    found: list[str] = []
    for chat in chats:
        with suppress(LogDamaged):
            if fold(await store.read(chat)).ended is None:
                found.append(chat)
    return found
