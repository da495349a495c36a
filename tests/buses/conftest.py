"""The adapters under contract."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from cluster.serving import served_client

from septet.buses.memory import MemoryBus
from septet.buses.nats import NatsBus
from septet.ports import Bus


@pytest.fixture(params=["memory", "nats"])
async def bus(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Bus]:
    match request.param:
        case "nats":
            async with served_client(tmp_path / "nats") as client:
                yield NatsBus(client)
        case _:
            yield MemoryBus()
