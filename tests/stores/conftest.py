"""The adapters under contract."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from septet.ports import Blobs, EventStore
from septet.stores.blobs import FolderBlobs
from septet.stores.memory import MemoryBlobs, MemoryStore
from septet.stores.sqlite import open_store


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[EventStore]:
    match request.param:
        case "memory":
            yield MemoryStore()
        case _:
            async with open_store(tmp_path / "log.db") as opened:
                yield opened


@pytest.fixture(params=["memory", "folder"])
async def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    match request.param:
        case "memory":
            return MemoryBlobs()
        case _:
            return FolderBlobs(tmp_path / "blobs")
