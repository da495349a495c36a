"""The status of a host: its server, its streams, its participants, and who conducts which chat."""

from collections.abc import Sequence

import nats.errors
import nats.js.errors
from nats.js.api import StreamInfo
from nats.js.manager import JetStreamManager

from septet.chat.results import status
from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats
from septet.cluster.endpoint import NatsEndpoint, without_secret
from septet.cluster.hosts import check_conductor
from septet.cluster.presence import list_participants
from septet.cluster.store import open_nats_store
from septet.common.values import Value
from septet.domain.presence import Participant
from septet.domain.reduce import fold
from septet.errors import LogDamaged, Unreachable
from septet.ports import ChatHead, EventStore

MAX_CHATS = 20
"""How many chats are listed, the most recently changed ones."""


class StreamStatus(Value, omit_defaults=False):
    name: str
    messages: int
    bytes: int
    replicas: int
    leader: str


class ChatStatus(Value, omit_defaults=False):
    """`conductors` are the names of its present conductors; there are two only for a moment."""

    chat: str
    status: str
    ended: bool
    changed: float
    conductors: tuple[str, ...]


class HostStatus(Value, omit_defaults=False):
    address: str
    version: str
    streams: tuple[StreamStatus, ...]
    people: tuple[Participant, ...]
    chats: tuple[ChatStatus, ...]


async def fetch_host_status(endpoint: NatsEndpoint) -> HostStatus:
    async with connect_nats(endpoint) as client:
        try:
            return await read_status(client, endpoint)
        except nats.errors.Error as error:
            check_conductor(client)
            where = without_secret(endpoint.address)
            raise Unreachable(f"the server at {where} does not answer ({error})", "try again") from error


async def read_status(client: Connection, endpoint: NatsEndpoint) -> HostStatus:
    people = await list_participants(client)
    store = await open_nats_store(client)
    heads = await store.chats()
    version = client.connected_server_version
    return HostStatus(
        address=without_secret(endpoint.address),
        version=f"{version.major}.{version.minor}.{version.patch}",
        streams=tuple(map(stream_status, await streams(client))),
        people=tuple(people),
        chats=tuple(await chat_statuses(store, heads, people)),
    )


async def streams(client: Connection) -> list[StreamInfo]:
    try:
        infos = await JetStreamManager(client).streams_info()
    except nats.js.errors.NotFoundError:
        return []
    return sorted(infos, key=lambda info: info.config.name or "")


def stream_status(info: StreamInfo) -> StreamStatus:
    return StreamStatus(
        name=info.config.name or "",
        messages=info.state.messages,
        bytes=info.state.bytes,
        replicas=info.config.num_replicas or 1,
        leader=(info.cluster.leader if info.cluster else "") or "",
    )


async def chat_statuses(
    store: EventStore, heads: Sequence[ChatHead], people: Sequence[Participant]
) -> list[ChatStatus]:
    """The most recently changed chats, without logs in which no chat was started."""
    statuses: list[ChatStatus] = []
    for head in heads:
        if len(statuses) < MAX_CHATS and (chat := await chat_status(store, head, people)) is not None:
            statuses.append(chat)
    return statuses


async def chat_status(store: EventStore, head: ChatHead, people: Sequence[Participant]) -> ChatStatus | None:
    try:
        state = fold(await store.read(head.chat))
    except LogDamaged as error:
        text = f"damaged: {error.cause}"
        return ChatStatus(chat=head.chat, status=text, ended=True, changed=head.changed, conductors=())
    if not state.goal:
        return None
    conductors = [
        person.presence for person in people if person.is_present and head.chat in person.presence.chats
    ]
    return ChatStatus(
        chat=head.chat,
        status=status(state),
        ended=state.ended is not None,
        changed=head.changed,
        conductors=tuple(f"{person.name} on {person.machine}" for person in conductors),
    )
