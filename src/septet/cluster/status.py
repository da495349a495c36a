"""How a host stands: its server, its streams, who is there, and who conducts which chat."""

from collections.abc import Sequence

import nats.errors
import nats.js.errors
from nats.js.api import StreamInfo
from nats.js.manager import JetStreamManager

from septet.chat.results import status
from septet.cluster.client import Connection
from septet.cluster.connection import Link, connect, shown
from septet.cluster.hosts import check_conductor
from septet.cluster.presence import seen
from septet.cluster.store import open_nats_store
from septet.common.values import Value
from septet.domain.presence import Seen
from septet.domain.reduce import fold
from septet.errors import LogDamaged, Unreachable
from septet.ports import ChatHead, EventStore

SHOWN = 20
"""How many chats are told, those that moved last."""


class StreamStanding(Value, omit_defaults=False):
    name: str
    messages: int
    bytes: int
    replicas: int
    leader: str


class ChatStanding(Value, omit_defaults=False):
    """`conductors` are the names of those who say that they conduct it; two only for a moment."""

    chat: str
    status: str
    ended: bool
    changed: float
    conductors: tuple[str, ...]


class Standing(Value, omit_defaults=False):
    address: str
    version: str
    streams: tuple[StreamStanding, ...]
    people: tuple[Seen, ...]
    chats: tuple[ChatStanding, ...]


async def standing(link: Link) -> Standing:
    async with connect(link) as client:
        try:
            return await standing_of(client, link)
        except nats.errors.Error as error:
            check_conductor(client)
            where = shown(link.address)
            raise Unreachable(f"the server at {where} does not answer ({error})", "try again") from error


async def standing_of(client: Connection, link: Link) -> Standing:
    people = await seen(client)
    store = await open_nats_store(client)
    heads = await store.chats()
    version = client.connected_server_version
    return Standing(
        address=shown(link.address),
        version=f"{version.major}.{version.minor}.{version.patch}",
        streams=tuple(map(stream_standing, await streams(client))),
        people=tuple(people),
        chats=tuple(await chat_standings(store, heads, people)),
    )


async def streams(client: Connection) -> list[StreamInfo]:
    try:
        found = await JetStreamManager(client).streams_info()
    except nats.js.errors.NotFoundError:
        return []
    return sorted(found, key=lambda info: info.config.name or "")


def stream_standing(info: StreamInfo) -> StreamStanding:
    return StreamStanding(
        name=info.config.name or "",
        messages=info.state.messages,
        bytes=info.state.bytes,
        replicas=info.config.num_replicas or 1,
        leader=(info.cluster.leader if info.cluster else "") or "",
    )


async def chat_standings(
    store: EventStore, heads: Sequence[ChatHead], people: Sequence[Seen]
) -> list[ChatStanding]:
    """Those that moved last; what a member wrote where no chat was ever started is none."""
    found: list[ChatStanding] = []
    for head in heads:
        if len(found) < SHOWN and (one := await chat_standing(store, head, people)) is not None:
            found.append(one)
    return found


async def chat_standing(store: EventStore, head: ChatHead, people: Sequence[Seen]) -> ChatStanding | None:
    try:
        state = fold(await store.read(head.chat))
    except LogDamaged as error:
        said = f"damaged: {error.cause}"
        return ChatStanding(chat=head.chat, status=said, ended=True, changed=head.changed, conductors=())
    if not state.goal:
        return None
    conductors = [one.presence for one in people if one.there and head.chat in one.presence.chats]
    return ChatStanding(
        chat=head.chat,
        status=status(state),
        ended=state.ended is not None,
        changed=head.changed,
        conductors=tuple(f"{one.name} on {one.machine}" for one in conductors),
    )
