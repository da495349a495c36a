"""Who is where: members and conductors say every few seconds that they are there, and the server remembers."""

import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from secrets import token_hex
from time import time

import anyio
import msgspec
import nats.errors
import nats.js.errors
from nats.js.api import RawStreamMsg, StorageType, StreamConfig
from nats.js.client import JetStreamContext

from septet.cluster.client import Connection
from septet.cluster.users import PRESENCE, PRESENCE_STREAM
from septet.common.text import encode_token
from septet.domain.presence import HEARTBEAT, Kind, Participant, Presence

MAX_AGE = 86_400.0
"""Seconds for which one who fell silent is still remembered."""
MOST, LONGEST = 5000, 1 << 20
"""Signs that are remembered, and bytes of one: a member that floods them harms nobody for long."""
OPERATION = "KV-Operation"

PRESENCES = msgspec.json.Decoder(Presence)


async def create_presence_stream(client: Connection, replicas: int = 1) -> None:
    """The server's memory of signs: the newest of each."""
    config = StreamConfig(
        name=PRESENCE_STREAM,
        subjects=[f"$KV.{PRESENCE}.>"],
        storage=StorageType.FILE,
        num_replicas=replicas,
        max_msgs_per_subject=1,
        max_msgs=MOST,
        max_msg_size=LONGEST,
        max_age=MAX_AGE,
        allow_direct=True,
    )
    with suppress(nats.js.errors.BadRequestError):  # there already, made with other settings
        await JetStreamContext(client).add_stream(config)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial


class PresenceBeacon:
    """One who is there."""

    def __init__(self, client: Connection, kind: Kind, name: str, roles: tuple[str, ...] = ()) -> None:
        self._client = client
        self.key = f"$KV.{PRESENCE}.{kind}.{encode_token(client.user)}.{token_hex(6)}"
        self._presence = Presence(
            kind=kind, name=name, machine=socket.gethostname(), pid=os.getpid(), since=time(), roles=roles
        )
        self._chats: dict[str, None] = {}

    async def add_chat(self, chat: str) -> None:
        self._chats[chat] = None
        await self.publish()

    async def remove_chat(self, chat: str) -> None:
        self._chats.pop(chat, None)
        await self.publish()

    async def publish(self) -> None:
        """A sign that gets lost is followed by another."""
        now = msgspec.structs.replace(self._presence, chats=tuple(self._chats))
        with suppress(nats.errors.Error):
            if self._client.is_connected:
                await self._client.publish(self.key, msgspec.json.encode(now))

    async def withdraw(self) -> None:
        """Go in order: nobody waits for a sign."""
        with anyio.move_on_after(1.0, shield=True), suppress(nats.errors.Error):
            if self._client.is_connected:
                await self._client.publish(self.key, headers={OPERATION: "DEL"})
                await self._client.flush()

    async def publish_forever(self) -> None:
        while True:
            await anyio.sleep(HEARTBEAT)
            await self.publish()


@asynccontextmanager
async def announce_presence(
    client: Connection, kind: Kind, name: str, roles: tuple[str, ...] = ()
) -> AsyncGenerator[PresenceBeacon]:
    """Be there for as long as the context lasts."""
    sign = PresenceBeacon(client, kind, name, roles)
    async with anyio.create_task_group() as tasks:
        await sign.publish()
        tasks.start_soon(sign.publish_forever)
        try:
            yield sign
        finally:
            await sign.withdraw()
            tasks.cancel_scope.cancel()


async def list_participants(client: Connection) -> list[Participant]:
    """Everybody who was there within a day and did not leave in order; the newest sign first."""
    stream = JetStreamContext(client)
    try:
        info = await stream.stream_info(PRESENCE_STREAM, subjects_filter=">")
    except nats.js.errors.NotFoundError:
        return []
    found = [await last_presence(stream, subject) for subject in info.state.subjects or {}]
    return sorted((one for one in found if one is not None), key=lambda one: one.silent)


def is_dead(presence: Presence) -> bool:
    """Whether it was a process of this machine that is no more."""
    if presence.machine != socket.gethostname():
        return False
    try:
        os.kill(presence.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


async def remove_participant(client: Connection, gone: Participant) -> None:
    """Nothing more is expected of who fell silent."""
    with suppress(nats.errors.Error):
        await client.publish(gone.key, headers={OPERATION: "DEL"})


async def last_presence(stream: JetStreamContext, subject: str) -> Participant | None:
    try:
        message = await stream.get_last_msg(PRESENCE_STREAM, subject)
    except nats.js.errors.NotFoundError:  # gone meanwhile
        return None
    if not message.data:
        return None
    with suppress(msgspec.MsgspecError):
        found = PRESENCES.decode(message.data)
        return (
            Participant(presence=found, silent=age(message), key=subject)
            if is_plausible(found, subject)
            else None
        )
    return None


def is_plausible(presence: Presence, subject: str) -> bool:
    """Whether one who may write there can be that: by the subject the server tells conductors from members."""
    return subject.split(".")[2] == presence.kind and (presence.kind == "conductor" or not presence.chats)


def age(message: RawStreamMsg) -> float:
    return max(0.0, (datetime.now(UTC) - message.time).total_seconds()) if message.time else 0.0
