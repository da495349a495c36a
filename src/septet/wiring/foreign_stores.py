"""Stores of installed packages, which hold the logs of a program's chats instead of the home's."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeGuard

from septet.common.entry_points import plugin
from septet.errors import BadConfig
from septet.ports import EventStore

GROUP = "septet.stores"
Opening = AbstractAsyncContextManager[EventStore]


def open_installed_store(name: str, folder: Path) -> Opening:
    """The store of that name, open while its context is; `folder` is where Septet keeps its data."""
    found = plugin(GROUP, name)
    if not is_opener(found):
        raise BadConfig(f"the store '{name}' is not here", "install its package, or pass the object itself")
    return found(folder)


def is_opener(found: object) -> TypeGuard[Callable[[Path], Opening]]:
    return callable(found)
