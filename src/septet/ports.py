"""The ports: protocols for what the core needs from outside. A contract suite tests every adapter of a port."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, NamedTuple, Protocol

from septet.common.values import Value
from septet.domain.events import Event, Recorded
from septet.domain.messages import Answer, Delta, Request
from septet.domain.packages import Installation, MissingPackages
from septet.domain.plans import Example
from septet.domain.runs import Job, RunResult
from septet.domain.state import State

Record = Callable[[Event], Awaitable[State]]
"""Stores one event and returns the state after it, including messages the person sent in the meantime."""

Agent = Callable[[State, Record], Awaitable[Event | None]]
"""A member: takes its turn, given the state of the chat, with `state = await record(event)` for each thing it does.

The event that it returns ends the turn; it is stored together with the move that follows it, as one step.
Called again for a turn that a crash interrupted, it does only what is missing.
"""

Listener = Callable[[Literal["stdout", "stderr"], bytes], None]
"""Receives the output of a running program, piece by piece."""


class Model(Protocol):
    def answer(self, request: Request) -> AsyncIterator[Delta | Answer]:
        """Yield the pieces as they arrive, then once the whole answer. Raises ModelFailed or NoModel."""
        ...


class Sandbox(Protocol):
    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        """Run to the end or to a limit; no child process survives. Raises NoSandbox or SandboxFailed."""
        ...


class Packages(Protocol):
    async def find_missing(self, workspace: str, sources: Mapping[str, str]) -> MissingPackages:
        """Find what the sources (path → text) import and neither the system nor the workspace provides."""
        ...

    async def install(self, workspace: str, missing: MissingPackages) -> Installation:
        """Install into the workspace's own environment. A failure is reported in the result, not raised."""
        ...

    def setup_job(self, job: Job) -> Job:
        """The job that makes a project's environment: the indexes in reach, uv on its path, and room."""
        ...


class ChatHead(Value):
    """A chat in a list: its name, its last sequence number, when it started and when it last changed."""

    chat: str
    seq: int
    started: float
    changed: float


class RemoteChat(Value, omit_defaults=False):
    """A chat whose log is on a `server`, as last seen from this machine. `command` resumes it, `status` is its state
    as text, and `ending` the same for programs.
    """

    chat: str
    server: str
    command: str
    goal: str
    status: str
    ending: str
    versions: int
    workspace: str
    changed: float


Sequel = Callable[[Sequence[Recorded]], Event]
"""Builds the follow-up event from everything stored since `after`; the last element is the event itself, whose
sequence number is not final yet.
"""


class EventStore(Protocol):
    async def append(
        self, chat: str, event: Event, after: int | None, then: Sequel | None = None
    ) -> Sequence[Recorded]:
        """Store one event durably and return everything stored since `after`, this event last.

        `after` is the last sequence number the writer has seen. Messages of the person (stored with `after=None`)
        may have come since; any other event means a second conductor and raises Conflict. With `after=None` the
        event is appended unconditionally, and only it is returned.

        `then` builds one more event, which is stored right behind the first: both or neither. It may be called
        from another thread, and again if a message of the person came in between.
        """
        ...

    async def read(self, chat: str, after: int = 0) -> Sequence[Recorded]:
        """Return the events with a sequence number above `after`, in order; none for an unknown chat."""
        ...

    async def chats(self, most: int = 0) -> Sequence[ChatHead]:
        """List the chats, most recently changed first: all of them, or at most so many."""
        ...

    def watch(self, chat: str, after: int = 0) -> AsyncIterator[Recorded]:
        """Yield the events after `after`, then each new one, without gaps or duplicates; never ends."""
        ...


class ChatCatalog(Protocol):
    """Renames and deletes whole chats. Stores on a server do not implement it: they are append-only."""

    async def rename(self, chat: str, name: str) -> None:
        """Rename the chat; a conductor that is running it gets a Conflict at its next append.

        Raises Conflict if there is no such chat, or if the name is taken.
        """
        ...

    async def delete(self, chat: str) -> None:
        """Delete the chat's log for good; do nothing if there is no such chat."""
        ...


class Blobs(Protocol):
    async def put(self, content: bytes) -> str:
        """Store the content and return its address, the sha256."""
        ...

    async def get(self, address: str) -> bytes:
        """Return the verified content. Raises LogDamaged if it is missing or does not match its address."""
        ...


class Examples(Protocol):
    async def learn(self, examples: Iterable[Example]) -> int:
        """Store the examples that are new, and return how many were."""
        ...

    async def find(self, question: str) -> Example | None:
        """Return the best example for a failure, or None if nothing matches well enough."""
        ...


class BusMessage(NamedTuple):
    """A message, and the name under which it was published."""

    by: str
    message: bytes


class Bus(Protocol):
    async def publish(self, topic: str, message: bytes, by: str = "") -> None:
        """Send to the current subscribers, under the name `by`, which needs permission; nothing is stored."""
        ...

    def subscribe(self, topic: str) -> AbstractAsyncContextManager[AsyncIterator[BusMessage]]:
        """Receive what is published after the context is entered, in order per publisher."""
        ...
