"""A real nats-server for one test: its own store, a free port, gone afterwards."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats
from septet.cluster.server import ServerConfig, serve


@asynccontextmanager
async def served_client(folder: Path) -> AsyncGenerator[Connection]:
    async with serve(ServerConfig(folder=folder)) as server, connect_nats(server.endpoint) as client:
        yield client
