"""A host as it really is, and a member of it that has a token and bad intentions."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from nats.aio.client import Client
from nats.js.client import JetStreamContext

from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats
from septet.cluster.endpoint import NatsEndpoint
from septet.cluster.hosts import known_roles, open_host
from septet.cluster.server import NatsServer, ServerConfig
from septet.cluster.store import NatsStore, open_nats_store
from septet.cluster.stream import subject_of
from septet.cluster.users import Users
from septet.domain.codec import encode
from septet.domain.events import Event, Recorded

OWN = "septet.log.junk.t.facts_changed.coder"
"""A subject under which a coder may store what it likes."""


@dataclass
class Scene:
    server: NatsServer
    conductor: Connection
    coder: Connection
    store: NatsStore
    token: str

    async def messages(self) -> dict[str, int]:
        """How many messages each stream has."""
        found = await JetStreamContext(self.conductor).streams_info()
        return {info.config.name or "": info.state.messages for info in found}

    async def subjects(self, stream: str) -> list[str]:
        info = await JetStreamContext(self.conductor).stream_info(stream, subjects_filter=">")
        return list(info.state.subjects or {})


@asynccontextmanager
async def intruded(folder: Path) -> AsyncGenerator[Scene]:
    async with open_host(ServerConfig(folder=folder, roles=known_roles())) as server:
        token = str(Users(folder).token_file("coder"))
        endpoint = NatsEndpoint(address=server.endpoint.address, token_file=token)
        async with connect_nats(server.endpoint) as conductor, connect_nats(endpoint) as coder:
            yield Scene(server, conductor, coder, await open_nats_store(conductor), Path(token).read_text())


def line(event: Event, chat: str = "victim", at: float = 1.7e9) -> bytes:
    return encode(Recorded(chat=chat, seq=0, at=at, event=event))


async def forge(client: Client, event: Event, body: bytes, chat: str = "victim") -> int:
    """Store a body under the subject of an event; the number of the message."""
    answer = await client.request(subject_of(chat, [event], fenced=True), body, timeout=60)
    return int(json.loads(answer.data)["seq"])


async def have_echoed(coder: Client, body: bytes, target: str) -> None:
    """Store a body, and have the server answer with it to whom one likes: nobody checks where answers go."""
    number = json.loads((await coder.request(OWN, body, timeout=60)).data)["seq"]
    query = json.dumps({"seq": number}).encode()
    await coder.publish("$JS.API.DIRECT.GET.SEPTET_LOG", query, reply=target)
    await coder.flush()
    # The server answers in its own time: what is asked after it is answered after it.
    await coder.request("$JS.API.DIRECT.GET.SEPTET_LOG", query, timeout=60)
    await anyio.sleep(0.05)


async def say_rudely(scene: Scene, subject: bytes, body: bytes, headers: bytes = b"") -> None:
    """Past any client's manners: the bytes as they are, as the coder; returns when the server has read them."""
    host, port = scene.server.endpoint.address.removeprefix("nats://").split(":")
    user, _, secret = scene.token.partition(":")
    hello = {"user": user, "pass": secret, "verbose": False, "headers": True}
    head = b"NATS/1.0\r\n" + headers + b"\r\n"
    async with await anyio.connect_tcp(host, int(port)) as stream:
        await stream.send(b"CONNECT " + json.dumps(hello).encode() + b"\r\n")
        await stream.send(b"HPUB %s %d %d\r\n" % (subject, len(head), len(head) + len(body)))
        await stream.send(head + body + b"\r\nPING\r\n")
        answers = b""
        with anyio.fail_after(120):
            while b"PONG" not in answers:
                answers += await stream.receive()
    assert b"-ERR" not in answers, answers
