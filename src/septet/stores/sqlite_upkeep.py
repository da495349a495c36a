"""What only a person may do to a log: give a chat another name, or forget it for good."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from anyio import to_thread

from septet.errors import Conflict
from septet.stores.sqlite_file import PATIENCE, named_errors, open_writer

Upkeep = Callable[[sqlite3.Connection], None]


async def rename_chat(path: Path, old: str, new: str) -> None:
    """The same log under another name; a conductor that is at work on it meets a conflict."""

    def work(connection: sqlite3.Connection) -> None:
        if connection.execute("SELECT 1 FROM chats WHERE chat = ?", (new,)).fetchone():
            raise Conflict(f"a chat '{new}' exists already", "choose another name")
        connection.execute("UPDATE events SET chat = ? WHERE chat = ?", (new, old))
        connection.execute("UPDATE chats SET chat = ? WHERE chat = ?", (new, old))

    await to_thread.run_sync(in_one_go, path, work)


async def forget_chat(path: Path, chat: str) -> None:
    """Take the chat out of the log; its bytes are overwritten."""

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM events WHERE chat = ?", (chat,))
        connection.execute("DELETE FROM chats WHERE chat = ?", (chat,))

    await to_thread.run_sync(in_one_go, path, work)


def in_one_go(path: Path, work: Upkeep) -> None:
    connection = open_writer(path, PATIENCE)
    try:
        with named_errors(path):
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            try:
                work(connection)
                connection.execute("COMMIT")
            except BaseException:
                connection.rollback()
                raise
    finally:
        connection.close()
