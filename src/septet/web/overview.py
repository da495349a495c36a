"""The list of chats, told to every open page when one of them moves, whoever moved it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio

from septet.errors import StoreFailed
from septet.web.channels import Channel, Frames
from septet.web.frames import Frame, chats_frame
from septet.web.shelf import Shelf, Summary

GLANCE = 1.0
"""Seconds between two looks at the list while somebody has it open."""


class Overview:
    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._channel = Channel("")
        self._seen: dict[str, int] = {}
        self._listeners = 0
        self._wanted = anyio.Event()

    @asynccontextmanager
    async def listen(self) -> AsyncGenerator[Frames]:
        self._listeners += 1
        self._wanted.set()
        try:
            async with self._channel.listen() as frames:
                yield frames
        finally:
            self._listeners -= 1

    async def whole(self) -> Frame:
        return chats_frame(await self._shelf.summaries())

    async def follow(self) -> None:
        while True:
            if not self._listeners:
                self._wanted = anyio.Event()
                await self._wanted.wait()
            with suppress(StoreFailed):  # it may be back at the next look, and the page must not end with it
                if moved := self._moved(await self._shelf.summaries()):
                    self._channel.tell(chats_frame(moved))
            await anyio.sleep(GLANCE)

    def _moved(self, summaries: list[Summary]) -> list[Summary]:
        moved = [summary for summary in summaries if self._seen.get(summary.chat) != summary.seq]
        self._seen.update({summary.chat: summary.seq for summary in moved})
        return moved
