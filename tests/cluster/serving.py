"""A real nats-server for one test: its own store, a free port, gone afterwards."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from septet.cluster.client import Connection
from septet.cluster.connection import connect
from septet.cluster.server import ServerPlan, serve


@asynccontextmanager
async def served_client(folder: Path) -> AsyncGenerator[Connection]:
    async with serve(ServerPlan(folder=folder)) as server, connect(server.link) as client:
        yield client
