"""Presence: members and conductors send a heartbeat every few seconds, and the server stores the latest of each."""

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
"""Seconds for which a silent participant is still listed."""
MAX_MESSAGES, MAX_MESSAGE_BYTES = 5000, 1 << 20
"""The limits of the stream, so that a member that floods it does little harm."""
OPERATION_HEADER = "KV-Operation"

DECODER = msgspec.json.Decoder(Presence)


async def create_presence_stream(client: Connection, replicas: int = 1) -> None:
    """Create the stream with the latest heartbeat of each participant."""
    config = StreamConfig(
        name=PRESENCE_STREAM,
        subjects=[f"$KV.{PRESENCE}.>"],
        storage=StorageType.FILE,
        num_replicas=replicas,
        max_msgs_per_subject=1,
        max_msgs=MAX_MESSAGES,
        max_msg_size=MAX_MESSAGE_BYTES,
        max_age=MAX_AGE,
        allow_direct=True,
    )
    with suppress(nats.js.errors.BadRequestError):  # it exists with other settings
        await JetStreamContext(client).add_stream(config)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial


class PresenceBeacon:
    """Sends the heartbeats of one participant."""

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
        """Send a heartbeat; if it gets lost, another follows."""
        presence = msgspec.structs.replace(self._presence, chats=tuple(self._chats))
        with suppress(nats.errors.Error):
            if self._client.is_connected:
                await self._client.publish(self.key, msgspec.json.encode(presence))

    async def withdraw(self) -> None:
        """Remove the participant, so that no more heartbeats are expected."""
        with anyio.move_on_after(1.0, shield=True), suppress(nats.errors.Error):
            if self._client.is_connected:
                await self._client.publish(self.key, headers={OPERATION_HEADER: "DEL"})
                await self._client.flush()

    async def publish_forever(self) -> None:
        while True:
            await anyio.sleep(HEARTBEAT)
            await self.publish()


@asynccontextmanager
async def announce_presence(
    client: Connection, kind: Kind, name: str, roles: tuple[str, ...] = ()
) -> AsyncGenerator[PresenceBeacon]:
    """Be present until the context ends."""
    beacon = PresenceBeacon(client, kind, name, roles)
    async with anyio.create_task_group() as tasks:
        await beacon.publish()
        tasks.start_soon(beacon.publish_forever)
        try:
            yield beacon
        finally:
            await beacon.withdraw()
            tasks.cancel_scope.cancel()


async def list_participants(client: Connection) -> list[Participant]:
    """All participants of the last day that did not leave, most recently heard first."""
    stream = JetStreamContext(client)
    try:
        info = await stream.stream_info(PRESENCE_STREAM, subjects_filter=">")
    except nats.js.errors.NotFoundError:
        return []
    participants = [await last_presence(stream, subject) for subject in info.state.subjects or {}]
    return sorted(
        (participant for participant in participants if participant is not None),
        key=lambda participant: participant.silent,
    )


def is_dead(presence: Presence) -> bool:
    """Whether it was a process of this machine that no longer exists."""
    if presence.machine != socket.gethostname():
        return False
    try:
        os.kill(presence.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


async def remove_participant(client: Connection, participant: Participant) -> None:
    """Remove a participant that fell silent."""
    with suppress(nats.errors.Error):
        await client.publish(participant.key, headers={OPERATION_HEADER: "DEL"})


async def last_presence(stream: JetStreamContext, subject: str) -> Participant | None:
    try:
        message = await stream.get_last_msg(PRESENCE_STREAM, subject)
    except nats.js.errors.NotFoundError:  # gone meanwhile
        return None
    if not message.data:
        return None
    with suppress(msgspec.MsgspecError):
        presence = DECODER.decode(message.data)
        return (
            Participant(presence=presence, silent=age(message), key=subject)
            if is_plausible(presence, subject)
            else None
        )
    return None


def is_plausible(presence: Presence, subject: str) -> bool:
    """Whether the content is allowed for its subject: the server restricts who may write to which subject."""
    return subject.split(".")[2] == presence.kind and (presence.kind == "conductor" or not presence.chats)


def age(message: RawStreamMsg) -> float:
    return max(0.0, (datetime.now(UTC) - message.time).total_seconds()) if message.time else 0.0
