"""The adapters of each port, all under the same contract."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from cluster.serving import served_client

from septet.cluster.blobs import open_nats_blobs
from septet.cluster.bus import NatsBus
from septet.cluster.store import open_nats_store
from septet.ports import Blobs, Bus, EventStore
from septet.runtime.bus import MemoryBus
from septet.stores.blobs import FolderBlobs
from septet.stores.memory import MemoryBlobs, MemoryStore
from septet.stores.sqlite import open_store


@pytest.fixture(params=["memory", "sqlite", "nats"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[EventStore]:
    match request.param:
        case "memory":
            yield MemoryStore()
        case "nats":
            async with served_client(tmp_path / "nats") as client:
                yield await open_nats_store(client)
        case _:
            async with open_store(tmp_path / "log.db") as opened:
                yield opened


@pytest.fixture(params=["memory", "folder", "nats"])
async def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Blobs]:
    match request.param:
        case "memory":
            yield MemoryBlobs()
        case "nats":
            async with served_client(tmp_path / "nats") as client:
                yield await open_nats_blobs(client)
        case _:
            yield FolderBlobs(tmp_path / "blobs")


@pytest.fixture(params=["memory", "nats"])
async def bus(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Bus]:
    match request.param:
        case "nats":
            async with served_client(tmp_path / "nats") as client:
                yield NatsBus(client)
        case _:
            yield MemoryBus()
