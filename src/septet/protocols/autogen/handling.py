"""What a handler does while it runs: what it sends has ids that stay the same if it runs again, and counts once."""

from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import blake2b
from weakref import WeakKeyDictionary, WeakValueDictionary

from autogen_core import AgentId, CancellationToken

from septet.cluster.message_log import Fence

MAX_CANCELLED = 1000


@dataclass
class Handling:
    """An agent that handles a message. `cause` is the message's id."""

    runtime: object
    agent: AgentId
    cause: str
    fence: Fence
    _sent: Counter[str] = field(default_factory=Counter[str])

    def next_identity(self, destination: str) -> str:
        """The id of what it sends next to a destination: short, whatever led to it."""
        self._sent[destination] += 1
        text = f"{self.cause} {self.agent} {destination} {self._sent[destination]}"
        return blake2b(text.encode(), digest_size=15).hexdigest()


HANDLING: ContextVar[Handling | None] = ContextVar("septet_autogen_handling", default=None)


class Tokens:
    """Cancellation tokens by name, so that a token is the same one for everybody who got a message with it."""

    def __init__(self, announce: Callable[[str], None]) -> None:
        self._announce = announce
        self._names: WeakKeyDictionary[CancellationToken, str] = WeakKeyDictionary()
        self._tokens: WeakValueDictionary[str, CancellationToken] = WeakValueDictionary()
        self._cancelled: dict[str, None] = {}
        """The newest names that were cancelled: what comes later with one is cancelled at once."""

    def name(self, token: CancellationToken, proposal: str) -> str:
        """The name of a token; its cancelling will be announced to the other processes."""
        name = self._names.get(token)
        if name is None:
            name = self._names[token] = proposal
            self._tokens[name] = token
            token.add_callback(lambda: self._on_cancel(name))
        return name

    def find(self, name: str) -> CancellationToken:
        """The token of that name, with or without anybody who cancels it."""
        token = self._tokens.get(name) or CancellationToken()
        if name and name not in self._tokens:
            self._tokens[name] = token
            if name in self._cancelled:
                token.cancel()
            self._names[token] = name
            token.add_callback(lambda: self._on_cancel(name))
        return token

    def cancel(self, name: str) -> None:
        """Another process has cancelled it."""
        self._note(name)
        if (token := self._tokens.get(name)) is not None:
            token.cancel()

    def _on_cancel(self, name: str) -> None:
        if name not in self._cancelled:
            self._note(name)
            self._announce(name)

    def _note(self, name: str) -> None:
        self._cancelled[name] = None
        if len(self._cancelled) > MAX_CANCELLED:
            del self._cancelled[next(iter(self._cancelled))]
