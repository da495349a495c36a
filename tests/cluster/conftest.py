"""A server of one's own."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from septet.cluster.server import NatsServer, ServerConfig, serve


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[NatsServer]:
    async with serve(ServerConfig(folder=tmp_path / "nats")) as running:
        yield running
