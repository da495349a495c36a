"""What every request works with: the session, and what the server knows and does about its chats."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio

from septet.chat.search import Index
from septet.domain.presence import BEAT
from septet.errors import SeptetError
from septet.web.channels import Channels
from septet.web.conducting import Conducting
from septet.web.overview import Overview
from septet.web.shelf import Shelf
from septet.wiring.session import Session


class Place:
    def __init__(
        self, session: Session, model: str, channels: Channels, conducting: Conducting, shelf: Shelf
    ) -> None:
        self.session = session
        self.model = model
        self.channels = channels
        self.conducting = conducting
        self.shelf = shelf
        self.overview = Overview(shelf)
        self.index = Index(session.store)


@asynccontextmanager
async def open_place(session: Session, model: str) -> AsyncGenerator[Place]:
    """Chats go on in the background until the place is closed; they can all be resumed."""
    async with anyio.create_task_group() as tasks:
        channels = Channels(session.store, session.bus, tasks)
        conducting = Conducting(session, channels, tasks)
        place = Place(session, model, channels, conducting, Shelf(session.store))
        tasks.start_soon(place.overview.follow)
        if session.elsewhere:
            tasks.start_soon(adopt_orphans, place)
        yield place
        tasks.cancel_scope.cancel()


async def adopt_orphans(place: Place) -> None:
    """Go on with chats whose conductor died, also our own before a restart. Should two do so, one wins."""
    while True:
        with suppress(SeptetError):  # it is tried again, and the page must not end with it
            for chat in await place.session.orphans():
                place.conducting.go_on(await place.shelf.state(chat))
        await anyio.sleep(BEAT)
