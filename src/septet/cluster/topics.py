"""Agents of your own that talk freely over a `septet host`: topics, subscriptions, requests. The public API of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from septet.buses.addresses import AgentId, PrefixSubscription, Subscription, TopicId, TypeSubscription
from septet.buses.connection import connect
from septet.buses.mailbox import Handler, Handlers, serve_agents
from septet.buses.parcels import DeadLetter, Parcel
from septet.buses.post import Desk, Post, open_post
from septet.errors import RemoteFailed, Unreachable
from septet.settings.meetings import Meeting
from septet.wiring.links import link_to

__all__ = [
    "AgentId",
    "DeadLetter",
    "Desk",
    "Handler",
    "Handlers",
    "Parcel",
    "Post",
    "PrefixSubscription",
    "RemoteFailed",
    "Subscription",
    "TopicId",
    "TypeSubscription",
    "Unreachable",
    "open_topics",
    "serve_agents",
]


@asynccontextmanager
async def open_topics(
    url: str = "", *, token_file: str | Path | None = None, tls_ca: str = "", wait: float = 30.0
) -> AsyncGenerator[Post]:
    """The topics of a server, which may take `wait` seconds to come up; leaving stops the agents that are served.

    On the machine of the host nothing need be said: its address and its token are found where it keeps them.
    """
    path = Path(token_file) if token_file is not None else None
    link = link_to(Meeting(url=url, token_file=path, tls_ca=tls_ca))
    async with connect(link, wait=wait) as client, open_post(client) as post:
        yield post
