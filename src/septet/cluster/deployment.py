"""Chats conducted here with members on other machines: orders turns, follows the log, mirrors files."""

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, time

import anyio
import msgspec
import nats.errors
from msgspec.structs import replace
from nats.aio.msg import Msg

from septet.chat.results import result_of, status
from septet.cluster.client import Connection
from septet.cluster.connection import retry_forever
from septet.cluster.hosts import REMOTE_ROLES
from septet.cluster.presence import PresenceBeacon, is_dead, list_participants, remove_participant
from septet.cluster.store import POLL_SECONDS, Feed, NatsStore
from septet.cluster.stream import message_number
from septet.cluster.turns import (
    ENCODER,
    LEASE,
    ORDER_SUBJECT,
    TURN_MESSAGE_DECODER,
    MemberLeft,
    TurnFailed,
    TurnMessage,
    TurnOrder,
    as_error,
    turn_subject,
)
from septet.common.values import Value
from septet.domain.codec import actor
from septet.domain.events import (
    ChatEnded,
    ChatHalted,
    Event,
    PersonSpoke,
    PlanApproved,
    Recorded,
    RunFinished,
    StepGranted,
    StopRequested,
    TurnOpened,
    VersionWritten,
    WorkAccepted,
)
from septet.domain.files import FileRef, Layout
from septet.domain.presence import HEARTBEAT, Participant, other_conductors, silent_conductors
from septet.domain.reduce import fold
from septet.domain.runs import Job, RunResult
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.errors import Conflict, LogDamaged, NoSandbox
from septet.ports import Blobs, EventStore, Listener, RemoteChat, Sandbox
from septet.runtime.conductor import Agents, perform
from septet.runtime.deployment import Deployment
from septet.runtime.log import Listen, Log
from septet.stores.remote_chats import RemoteChats
from septet.team.floor import Floor, step
from septet.team.layouts import layout_of
from septet.workspace.files import Workspace
from septet.workspace.snapshots import hidden_in, take_snapshot

RETRY_DELAY = 0.2
"""Seconds until a turn is ordered again if no member served its role."""
PICKUP_TIMEOUT = 2.0
"""Seconds in which a member should take a newly opened turn: its first heartbeat comes much earlier."""

PERSON_EVENTS = (PersonSpoke, PlanApproved, StepGranted, StopRequested, WorkAccepted, ChatHalted)
"""Events that may come between those of others, like every event whose actor is the person."""


class NoResponders(Value):
    """The server's answer that no member serves the role now."""


News = list[Recorded] | TurnMessage | NoResponders


class ChatListener:
    """What happens in one chat: the events that are stored, then the messages of members at work."""

    def __init__(self, client: Connection, store: NatsStore, feed: Feed, after: int) -> None:
        self._client = client
        self._store = store
        self._feed = feed
        self._after = after
        self._is_complete = False
        """Whether the feed has all that follows `after`; else the log is read first."""
        self._poll_at = monotonic() + POLL_SECONDS
        self._messages: deque[TurnMessage | NoResponders] = deque()

    async def order(self, state: State) -> None:
        """Ask for a member to take the open turn. A lost order is repeated later."""
        assert state.floor.turn is not None
        name = state.floor.turn.speaker
        role = next((member.role for member in state.team.members if member.name == name), name)
        order = TurnOrder(chat=self._feed.chat, opened=state.floor.turn.opened_at)
        with suppress(nats.errors.Error):
            if self._client.is_connected:
                reply = turn_subject(self._feed.chat)
                await self._client.publish(f"{ORDER_SUBJECT}.{role}", ENCODER.encode(order), reply=reply)

    def receive(self, message: Msg) -> None:
        with suppress(msgspec.MsgspecError):  # not from a member
            turn_message = TURN_MESSAGE_DECODER.decode(message.data) if message.data else NoResponders()
            if turn_message not in self._messages:  # a member that repeats itself must not fill the memory
                self._messages.append(turn_message)
                self._feed.signal.notify()

    async def next(self, timeout: float, stored: int = 0) -> News | None:
        """The next events, or the next message; None after at most `timeout` seconds without any.

        This process has stored the event `stored` and so knows what comes before it.
        """
        if stored > self._after:
            self._after, self._is_complete = stored, True
        events = await self._new_events()
        if not (events or self._messages):
            await self._feed.signal.wait(min(timeout, self._poll_at - monotonic()))
            self._is_complete = self._is_complete and monotonic() < self._poll_at
            events = await self._new_events()
        return events or (self._messages.popleft() if self._messages else None)

    async def _new_events(self) -> list[Recorded]:
        events = list[Recorded]() if self._is_complete else await self._read()
        # From the last look at the feed until somebody waits for it, nothing else runs.
        while (messages := self._feed.take(message_number(self._after))) is None:
            events += await self._read()
        return events + self._note(self._store.unpack(messages)) if messages else events

    async def _read(self) -> list[Recorded]:
        return self._note(await self._store.read(self._feed.chat, self._after))

    def _note(self, events: Sequence[Recorded]) -> list[Recorded]:
        self._is_complete, self._poll_at = True, monotonic() + POLL_SECONDS
        self._after = events[-1].seq if events else self._after
        return list(events)


@asynccontextmanager
async def open_listener(
    client: Connection, store: NatsStore, chat: str, after: int
) -> AsyncGenerator[ChatListener]:
    """The listener of a chat, from the event after `after` on."""
    async with store.feed(chat) as feed:
        listener = ChatListener(client, store, feed, after)
        subscription = await client.listen(turn_subject(chat), listener.receive)
        try:
            yield listener
        finally:
            if not client.is_closed:
                await subscription.unsubscribe()


async def perform_with_remote_members(
    client: Connection, store: NatsStore, log: Log, floor: Floor, agents: Agents, lease: float = LEASE
) -> None:
    """The loop with members on many machines: run the turns of local members, follow those of others in the log."""
    async with open_listener(client, store, log.state.chat, log.state.seq) as listener:
        while log.state.ended is None:
            await perform(log, floor, agents)
            remote_turn = RemoteTurn(log, floor, listener, lease)
            while log.state.floor.turn is not None and log.state.floor.turn.speaker not in agents:
                await remote_turn.next()


class RemoteTurn:
    """Follows the chat while remote members have the floor."""

    def __init__(self, log: Log, floor: Floor, listener: ChatListener, lease: float = LEASE) -> None:
        self._log = log
        self._floor = floor
        self._listener = listener
        self._lease = lease
        self._pickup_timeout = min(PICKUP_TIMEOUT, lease)
        self._due = monotonic() + self._pickup_timeout
        """When the turn is ordered, unless something arrives before."""
        self._states_before_person: list[State] = []
        """The states before each of the person's latest messages: a member that moves now may not have seen them."""

    async def next(self) -> None:
        """Follow the next events of the chat. Raises a member's error, or LogDamaged if a member broke the rules."""
        while True:
            news = await self._listener.next(max(0.0, self._due - monotonic()), self._log.state.seq)
            if isinstance(news, list):
                if any([await self._follow(recorded) for recorded in news]):
                    return
            elif news is not None:
                await self._handle_message(news)
            elif monotonic() >= self._due:
                await self._order()

    async def _follow(self, recorded: Recorded) -> bool:
        """Whether the event is new, and the chat has not ended before it."""
        state, event = self._log.state, recorded.event
        if recorded.seq <= state.seq or state.ended is not None:
            return False
        if isinstance(event, TurnOpened | ChatEnded):
            check_step(state, event, self._floor, self._states_before_person)
        self._states_before_person = [*self._states_before_person, state] if is_from_person(event) else []
        self._due = monotonic() + (self._pickup_timeout if isinstance(event, TurnOpened) else self._lease)
        await self._log.follow(recorded)
        return True

    async def _handle_message(self, message: TurnMessage | NoResponders) -> None:
        self._due = monotonic() + self._lease
        if isinstance(message, TurnFailed):
            turn = self._log.state.floor.turn
            raise as_error(message, turn.speaker if turn else "member")
        if isinstance(message, MemberLeft | NoResponders):
            if isinstance(message, NoResponders):
                await anyio.sleep(RETRY_DELAY)
            await self._order()

    async def _order(self) -> None:
        self._due = monotonic() + self._lease
        await self._listener.order(self._log.state)


def is_from_person(event: Event) -> bool:
    return isinstance(event, PERSON_EVENTS) or actor(event) == "person"


def check_step(
    state: State, event: TurnOpened | ChatEnded, floor: Floor, earlier: Sequence[State] = ()
) -> None:
    """Check a member's move: the floor is a function of the log, so every process can compute it.

    A move that was right before the person's last messages is accepted: it crossed them on the way.
    """
    if event == (expected := step(state, floor(state))):
        return
    if all(event != step(before, floor(before)) for before in earlier):
        cause = f"a member of '{state.chat}' has made the move {event} instead of {expected}"
        raise LogDamaged(cause, "do all machines run the same Septet, and are all members to be trusted?")


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
    store: NatsStore
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
        await perform_with_remote_members(self.client, self.store, log, floor, agents, self.lease)

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
        if state.base or not state.existing or state.floor.turn_counts or state.work.snapshots:
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
    """Apply a remote change to the workspace here. The person's own files stay: members have not seen them.

    What was made of a base is delivered instead.
    """
    if state.base is not None:
        return
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
