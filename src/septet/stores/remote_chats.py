"""Chats whose log is on a server, as this machine last saw them: a note each, so that they can be found again."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from septet.common.text import encode_token
from septet.ports import RemoteChat
from septet.workspace.delivery import replace_file

NOTES = msgspec.json.Encoder()


class RemoteChats:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, note: RemoteChat) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        replace_file(self._path(note.chat), NOTES.encode(note))

    def all(self) -> Sequence[RemoteChat]:
        """The one that moved last first; what cannot be read is no note of ours."""
        found: list[RemoteChat] = []
        for path in self._folder.glob("*.json"):
            with suppress(OSError, msgspec.MsgspecError):
                found.append(msgspec.json.decode(path.read_bytes(), type=RemoteChat))
        return sorted(found, key=lambda note: note.changed, reverse=True)

    def forget(self, chat: str) -> None:
        self._path(chat).unlink(missing_ok=True)

    def _path(self, chat: str) -> Path:
        return self._folder / f"{encode_token(chat)}.json"
