"""Coming in with a token, and what the server says to it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js.api import StreamConfig
from nats.js.client import JetStreamContext

from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats
from septet.cluster.endpoint import NatsEndpoint
from septet.cluster.server import NatsServer
from septet.cluster.users import Users
from septet.errors import SeptetError


async def refused(endpoint: NatsEndpoint) -> SeptetError:
    with pytest.raises(SeptetError) as caught:
        async with connect_nats(endpoint):
            pass
    return caught.value


def log_of(folder: Path) -> str:
    return (folder / "server.log").read_text()


@asynccontextmanager
async def as_member(server: NatsServer, folder: Path, role: str) -> AsyncGenerator[Connection]:
    """A connection with the token that opens this role and no other."""
    token = Users(folder).token_file(role)
    async with connect_nats(NatsEndpoint(address=server.endpoint.address, token_file=str(token))) as client:
        yield client


@asynccontextmanager
async def with_log(server: NatsServer) -> AsyncGenerator[Client]:
    """The conductor, on a server with the streams that rights are about."""
    async with connect_nats(server.endpoint) as client:
        stream = JetStreamContext(client)
        await stream.add_stream(StreamConfig(name="SEPTET_LOG", subjects=["septet.log.>"]))  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        yield client
