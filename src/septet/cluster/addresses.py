"""Who is written to: agents by type and key, topics by type and source, and the subscriptions that join them.

An agent of type `writer` that is subscribed to topics of type `draft` gets what is published to `draft/essay-1` as
the instance `writer/essay-1`: the topic's source is the agent's key.
"""

import re
from collections.abc import Iterable

from septet.common.text import encode_token
from septet.common.values import Value
from septet.errors import BadUsage

TYPE = re.compile(r"[\w\-.:=]+", re.ASCII)


class AgentId(Value):
    type: str
    key: str

    def __str__(self) -> str:
        return f"{self.type}/{self.key}"


class TopicId(Value):
    type: str
    source: str

    def __str__(self) -> str:
        return f"{self.type}/{self.source}"


class TypeSubscription(Value, tag="type"):
    """Agents of a type hear topics of exactly this type."""

    topic: str
    agent: str

    @property
    def id(self) -> str:
        return f"type.{encode_token(self.topic)}.{encode_token(self.agent)}"

    def covers(self, topic_type: str) -> bool:
        return topic_type == self.topic


class PrefixSubscription(Value, tag="prefix"):
    """Agents of a type hear every topic whose type begins like this."""

    prefix: str
    agent: str

    @property
    def id(self) -> str:
        return f"prefix.{encode_token(self.prefix)}.{encode_token(self.agent)}"

    def covers(self, topic_type: str) -> bool:
        return topic_type.startswith(self.prefix)


Subscription = TypeSubscription | PrefixSubscription


def agent_id(text: str) -> AgentId:
    """`writer/essay-1`, checked."""
    kind, slash, key = text.partition("/")
    if not slash or not TYPE.fullmatch(kind) or not key:
        raise BadUsage(f"'{text[:80]}' is no agent", "write type/key")
    return AgentId(type=kind, key=key)


def topic_id(text: str) -> TopicId:
    """`draft/essay-1`, checked."""
    kind, slash, source = text.partition("/")
    if not slash or not TYPE.fullmatch(kind) or not source:
        raise BadUsage(f"'{text[:80]}' is no topic", "write type/source")
    return TopicId(type=kind, source=source)


def heard_by(agent_type: str, topic_type: str, subscriptions: Iterable[Subscription]) -> bool:
    """Whether agents of the type hear topics of the other: once, however many subscriptions say so."""
    return any(one.agent == agent_type and one.covers(topic_type) for one in subscriptions)
