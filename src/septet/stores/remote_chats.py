"""Notes on chats whose log is on a server, as this machine last saw them, so that they can be listed and resumed."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from septet.common.text import encode_token
from septet.ports import RemoteChat

ENCODER = msgspec.json.Encoder()


class RemoteChats:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, note: RemoteChat) -> None:
        from septet.workspace.delivery import replace_file

        self._folder.mkdir(parents=True, exist_ok=True)
        replace_file(self._path(note.chat), ENCODER.encode(note))

    def all(self) -> Sequence[RemoteChat]:
        """All notes, most recently changed first; unreadable files are skipped."""
        notes: list[RemoteChat] = []
        for path in self._folder.glob("*.json"):
            with suppress(OSError, msgspec.MsgspecError):
                notes.append(msgspec.json.decode(path.read_bytes(), type=RemoteChat))
        return sorted(notes, key=lambda note: note.changed, reverse=True)

    def forget(self, chat: str) -> None:
        self._path(chat).unlink(missing_ok=True)

    def _path(self, chat: str) -> Path:
        return self._folder / f"{encode_token(chat)}.json"
