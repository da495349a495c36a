"""The ports: what the core needs from the world. Adapters prove that they fit in a contract suite."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, NamedTuple, Protocol

from septet.common.values import Value
from septet.domain.events import Event, Recorded
from septet.domain.examples import Example
from septet.domain.messages import Answer, Delta, Request
from septet.domain.packages import Installation, MissingPackages
from septet.domain.runs import Job, RunResult
from septet.domain.state import State

Record = Callable[[Event], Awaitable[State]]
"""Stores one event, and returns the state after it: what the person said meanwhile is in it too."""

Agent = Callable[[State, Record], Awaitable[Event | None]]
"""A member: given the chat so far, it takes its turn: `state = await record(event)` for each thing that it does.

The event that it returns ends the turn: it is stored together with the move that follows it, as one step.
Called again for a turn that a crash cut short, it does only what the turn still lacks.
"""

Listener = Callable[[Literal["stdout", "stderr"], bytes], None]


class Model(Protocol):
    def answer(self, request: Request) -> AsyncIterator[Delta | Answer]:
        """Pieces as they are made, then the whole answer, last and once. Raises ModelFailed or NoModel."""
        ...


class Sandbox(Protocol):
    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        """Run to the end or to a limit; every child is dead afterwards. Raises NoSandbox or SandboxFailed."""
        ...


class Packages(Protocol):
    async def find_missing(self, workspace: str, sources: Mapping[str, str]) -> MissingPackages:
        """What the sources (path → text) import and nothing provides: not the system, not the workspace itself."""
        ...

    async def install(self, workspace: str, missing: MissingPackages) -> Installation:
        """Into the environment of the workspace, which only its programs see. A failure is told, not raised."""
        ...


class ChatHead(Value):
    """A chat in a list: its name, how long its log is, when it began and when it last moved."""

    chat: str
    seq: int
    started: float
    changed: float


class RemoteChat(Value, omit_defaults=False):
    """A chat whose log is on a `server`, as it was last seen from here. `command` goes on with it, `status` is how it
    stood, and `ending` the same for programs.
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
"""What follows an event, by all that was stored since its writer looked, the event last (its sequence may yet change).
"""


class EventStore(Protocol):
    async def append(
        self, chat: str, event: Event, after: int | None, then: Sequel | None = None
    ) -> Sequence[Recorded]:
        """Store one event durably and return everything stored since `after`, this event last.

        `after` is the last sequence the writer has seen. Words of the person (`after=None`) may have come
        in between; anything else means another conductor, and raises Conflict. With `after=None` the event
        is stored wherever the log is now, and only it is returned.

        `then` makes one more event, which is stored right behind it: both or neither. It may be called from
        another thread, and again where words came in between.
        """
        ...

    async def read(self, chat: str, after: int = 0) -> Sequence[Recorded]:
        """The events with a sequence greater than `after`, in order; none for an unknown chat."""
        ...

    async def chats(self) -> Sequence[ChatHead]:
        """All chats, the one that moved last first."""
        ...

    def watch(self, chat: str, after: int = 0) -> AsyncIterator[Recorded]:
        """The events after `after`, then each new one as it is stored, without gap or double, for ever."""
        ...


class ChatCatalog(Protocol):
    """The chats of a store as wholes. A log on a server has none: it is only ever added to."""

    async def rename(self, chat: str, name: str) -> None:
        """The same events under another name; a conductor that is at work on the chat meets a Conflict.

        Raises Conflict where there is no such chat, or where the name is taken.
        """
        ...

    async def delete(self, chat: str) -> None:
        """Take the chat out of the log for good; nothing where there is no such chat."""
        ...


class Blobs(Protocol):
    async def put(self, content: bytes) -> str:
        """Keep the content; its sha256 is its address."""
        ...

    async def get(self, address: str) -> bytes:
        """The content, verified. Raises LogDamaged where it is missing or does not fit its address."""
        ...


class Examples(Protocol):
    async def learn(self, examples: Iterable[Example]) -> int:
        """Keep those that are new; says how many were."""
        ...

    async def find(self, question: str) -> Example | None:
        """The best answer to a failure, or none where nothing fits well enough."""
        ...


class BusMessage(NamedTuple):
    """A message, and in whose name it was published."""

    by: str
    message: bytes


class Bus(Protocol):
    async def publish(self, topic: str, message: bytes, by: str = "") -> None:
        """Tell whoever listens now, in the name of `by`; nothing is kept. A name needs the right to use it."""
        ...

    def subscribe(self, topic: str) -> AbstractAsyncContextManager[AsyncIterator[BusMessage]]:
        """What is published from the moment the context is entered, in order per publisher."""
        ...
