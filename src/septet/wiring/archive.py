"""The chats of this machine, to be read: a list needs no members, models and sandboxes, and opens at once."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing

from septet.chat.index_file import IndexFile
from septet.chat.names import find_name
from septet.domain.events import Recorded
from septet.domain.state import State
from septet.errors import BadUsage
from septet.ports import Blobs, EventStore, RemoteChat
from septet.settings.home import Home, find_home
from septet.stores.blobs import FolderBlobs
from septet.stores.remote_chats import RemoteChats
from septet.stores.sqlite import open_store


class Archive:
    """A log with its blobs, and the notes of chats on servers."""

    def __init__(self, home: Home, store: EventStore, blobs: Blobs) -> None:
        self.home = home
        self.store = store
        self.blobs = blobs
        self.index = IndexFile()
        """Summaries and the words of chats: of our own log in a file, of another's in memory."""
        self.remote_chats = RemoteChats(home.remote_chats)

    @property
    def is_remote(self) -> bool:
        """Whether the log is on a server."""
        return False

    async def find(self, name: str, whole: bool = False) -> str:
        """Find a chat by its name or, unless `whole`, by the beginning of its name."""
        known = [head.chat for head in await self.store.chats()]
        if not self.is_remote and name not in known:
            self.check_here(name)
        return find_name(name, known, whole)

    def check_here(self, name: str) -> None:
        """Raise BadUsage for a chat that is on a server, with the server and the command that continues it."""
        if (note := self._note_of(name)) is not None:
            raise BadUsage(f"the chat '{name}' is on {note.server}", note.command)

    async def remote_chat(self, name: str) -> RemoteChat | None:
        """The note of a chat that is on a server and not here."""
        note = self._note_of(name)
        here = note is not None and name in {head.chat for head in await self.store.chats()}
        return None if here else note

    def _note_of(self, name: str) -> RemoteChat | None:
        return next((note for note in self.remote_chats.all() if note.chat == name), None)

    async def log(self, chat: str) -> list[Recorded]:
        return list(await self.store.read(chat))

    async def state(self, chat: str) -> State:
        from septet.domain.reduce import fold

        return fold(await self.store.read(chat))


@asynccontextmanager
async def open_archive(home: Home | None = None) -> AsyncGenerator[Archive, None]:
    """Open the chats of this machine for reading; nothing is written but the index."""
    home = home or find_home()
    with closing(FolderBlobs(home.blobs)) as blobs:
        async with open_store(home.database) as store:
            archive = Archive(home, store, blobs)
            archive.index = IndexFile(home.index)
            with closing(archive.index):
                yield archive
