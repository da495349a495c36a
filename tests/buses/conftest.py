"""The adapters under contract, and a server of one's own."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from cluster.serving import served_client

from septet.cluster.bus import NatsBus
from septet.cluster.server import Server, ServerPlan, serve
from septet.ports import Bus
from septet.runtime.bus import MemoryBus


@pytest.fixture(params=["memory", "nats"])
async def bus(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Bus]:
    match request.param:
        case "nats":
            async with served_client(tmp_path / "nats") as client:
                yield NatsBus(client)
        case _:
            yield MemoryBus()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[Server]:
    async with serve(ServerPlan(folder=tmp_path / "nats")) as running:
        yield running
