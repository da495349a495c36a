"""The event store and the blobs in memory, for tests and for chats that need not be kept."""

from collections.abc import AsyncIterator, Sequence
from hashlib import sha256
from time import time

from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from septet.domain.events import Event, Recorded
from septet.errors import LogDamaged
from septet.ports import ChatHead, Sequel
from septet.stores.chat_locks import Signals, check_fence, name_taken, no_such_chat


class MemoryStore:
    def __init__(self) -> None:
        self._logs: dict[str, list[Recorded]] = {}
        self._fenced: dict[str, int] = {}
        self._signals = Signals()

    async def append(
        self, chat: str, event: Event, after: int | None, then: Sequel | None = None
    ) -> Sequence[Recorded]:
        await checkpoint()
        log = self._logs.get(chat, [])
        check_fence(chat, len(log), self._fenced.get(chat, 0), after)
        at = max(time(), log[-1].at) if log else time()
        added = [Recorded(chat=chat, seq=len(log) + 1, at=at, event=event)]
        if then is not None:
            sequel = then([*log[after or 0 :], *added])
            added.append(Recorded(chat=chat, seq=len(log) + 2, at=at, event=sequel))
        log += added
        self._logs[chat] = log
        if after is not None:
            self._fenced[chat] = len(log)
        self._signals.notify((chat,))
        return added if after is None else log[after:]

    async def read(self, chat: str, after: int = 0) -> Sequence[Recorded]:
        await checkpoint()
        return self._logs.get(chat, [])[after:]

    async def chats(self, most: int = 0) -> Sequence[ChatHead]:
        await checkpoint()
        heads = [
            ChatHead(chat=chat, seq=len(log), started=log[0].at, changed=log[-1].at)
            for chat, log in self._logs.items()
        ]
        return sorted(heads, key=lambda head: head.changed, reverse=True)[: most or None]

    async def watch(self, chat: str, after: int = 0) -> AsyncIterator[Recorded]:
        while True:
            changed = self._signals.event_of(chat)
            for recorded in await self.read(chat, after):
                yield recorded
                after = recorded.seq
            await changed.wait()

    async def rename(self, chat: str, name: str) -> None:
        await checkpoint()
        if chat not in self._logs:
            raise no_such_chat(chat)
        if name in self._logs:
            raise name_taken(name)
        self._logs[name] = [replace(recorded, chat=name) for recorded in self._logs.pop(chat)]
        self._fenced[name] = self._fenced.pop(chat, 0)

    async def delete(self, chat: str) -> None:
        await checkpoint()
        self._logs.pop(chat, None)
        self._fenced.pop(chat, None)


class MemoryBlobs:
    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}

    async def put(self, content: bytes) -> str:
        await checkpoint()
        address = sha256(content).hexdigest()
        self._contents[address] = bytes(content)
        return address

    async def get(self, address: str) -> bytes:
        await checkpoint()
        content = self._contents.get(address)
        if content is None:
            raise LogDamaged(f"the blob {address[:12]} is missing", "it was never stored in this process")
        return content
