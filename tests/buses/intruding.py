"""A host as it really is, and a member of it that has a token and bad intentions."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from nats.aio.client import Client
from nats.js.client import JetStreamContext

from septet.buses.connection import Connection, Link, connect
from septet.buses.server import Server, ServerPlan
from septet.buses.users import Users
from septet.domain.codec import encode
from septet.domain.events import Event, Recorded
from septet.stores.nats import NatsStore, open_nats_store
from septet.stores.nats_subjects import subject_of
from septet.wiring.hosts import known_roles, open_host

OWN = "septet.log.junk.t.facts_changed.coder"
"""A subject under which a coder may store what it likes."""


@dataclass
class Scene:
    server: Server
    conductor: Connection
    coder: Connection
    store: NatsStore

    async def messages(self) -> dict[str, int]:
        """How many messages each stream has."""
        found = await JetStreamContext(self.conductor).streams_info()
        return {info.config.name or "": info.state.messages for info in found}

    async def subjects(self, stream: str) -> list[str]:
        info = await JetStreamContext(self.conductor).stream_info(stream, subjects_filter=">")
        return list(info.state.subjects or {})


@asynccontextmanager
async def intruded(folder: Path) -> AsyncGenerator[Scene]:
    async with open_host(ServerPlan(folder=folder, roles=known_roles())) as server:
        token = str(Users(folder).token_file("coder"))
        link = Link(address=server.link.address, token_file=token)
        async with connect(server.link) as conductor, connect(link) as coder:
            yield Scene(server, conductor, coder, await open_nats_store(conductor))


def line(event: Event, chat: str = "victim", at: float = 1.7e9) -> bytes:
    return encode(Recorded(chat=chat, seq=0, at=at, event=event))


async def forge(client: Client, event: Event, body: bytes, chat: str = "victim") -> int:
    """Store a body under the subject of an event; the number of the message."""
    answer = await client.request(subject_of(chat, [event], fenced=True), body, timeout=5)
    return int(json.loads(answer.data)["seq"])


async def have_echoed(coder: Client, body: bytes, target: str) -> None:
    """Store a body, and have the server answer with it to whom one likes: nobody checks where answers go."""
    number = json.loads((await coder.request(OWN, body, timeout=5)).data)["seq"]
    query = json.dumps({"seq": number}).encode()
    await coder.publish("$JS.API.DIRECT.GET.SEPTET_LOG", query, reply=target)
    await coder.flush()
    # The server answers in its own time: what is asked after it is answered after it.
    await coder.request("$JS.API.DIRECT.GET.SEPTET_LOG", query, timeout=5)
    await anyio.sleep(0.05)
