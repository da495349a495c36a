"""A process that appends to some chats for ever and prints `chat seq number` for each acknowledged event."""

import os
import sys
from pathlib import Path

import anyio

from septet.domain.events import PersonSpoke
from septet.ports import EventStore
from septet.stores.sqlite import open_store


async def append_for_ever(store: EventStore, chat: str) -> None:
    log = await store.read(chat)
    seen, number = (log[-1].seq if log else 0), len(log)
    while True:
        recorded = (await store.append(chat, PersonSpoke(text=str(number)), after=seen))[-1]
        os.write(1, f"{chat} {recorded.seq} {number}\n".encode())
        seen, number = recorded.seq, number + 1


async def main(path: Path, chats: list[str]) -> None:
    async with open_store(path) as store, anyio.create_task_group() as group:
        for chat in chats:
            group.start_soon(append_for_ever, store, chat)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2:])
