"""What AutoGen agents send each other, as it is stored: CloudEvents, their subjects, and errors by type and text."""

import builtins
from asyncio import CancelledError
from collections.abc import Iterable
from typing import Literal

import autogen_core.exceptions
import msgspec
from autogen_core import (
    JSON_DATA_CONTENT_TYPE,
    Subscription,
    TopicId,
    TypePrefixSubscription,
    TypeSubscription,
)

from septet.common.text import encode_token
from septet.common.values import Value
from septet.protocols.autogen.serialization import Payload, Variant

TOPIC, DIRECT, REPLY, CANCEL, DEAD = "topic", "direct", "reply", "cancel", "dead"
"""First tokens of the subjects below the root."""
MAX_SUBJECTS = 200
"""From this many subjects on all of a kind are read."""

Kind = Literal["publish", "request", "reply", "error", "cancel", "metadata", "save", "load", "dead"]


NO_DATA = msgspec.Raw()


class Envelope(Value, omit_defaults=True):
    """A message: a CloudEvent with what delivery needs as extension attributes."""

    id: str
    source: str
    type: str
    specversion: str
    kind: Kind
    messageid: str = ""
    """The id that the sender gave it, if it gave one."""
    runtime: str = ""
    """The runtime that sent it, which gets the reply."""
    datacontenttype: str = JSON_DATA_CONTENT_TYPE
    dataschema: str = ""
    data: msgspec.Raw = NO_DATA
    data_base64: bytes = b""
    variants: tuple[Variant, ...] = ()
    topic: str = ""
    recipient: str = ""
    sender: str = ""
    request: str = ""
    """The request that a reply answers."""
    token: str = ""
    """The token by which the sender may cancel it."""
    expires: float = 0.0
    traceparent: str = ""
    tracestate: str = ""
    cause: "Envelope | None" = None
    """What could not be handled, in a dead letter."""

    @property
    def payload(self) -> Payload:
        return Payload(
            type=self.type,
            content_type=self.datacontenttype,
            data=bytes(self.data) or self.data_base64,
            schema=self.dataschema,
            variants=self.variants,
        )


ENCODER = msgspec.json.Encoder()
ENVELOPES = msgspec.json.Decoder(Envelope)


def seal(kind: Kind, identity: str, payload: Payload, **fields: object) -> Envelope:
    """An envelope around a payload."""
    is_json = payload.content_type == JSON_DATA_CONTENT_TYPE and is_valid_json(payload.data)
    return Envelope(
        id=identity,
        source="septet",
        specversion="1.0",
        kind=kind,
        type=payload.type,
        datacontenttype=payload.content_type,
        dataschema=payload.schema,
        data=msgspec.Raw(payload.data) if is_json else NO_DATA,
        data_base64=b"" if is_json else payload.data,
        variants=payload.variants,
        **fields,  # pyright: ignore[reportArgumentType]  # the envelope's own fields
    )


def is_valid_json(data: bytes) -> bool:
    """Whether it may stand in the envelope as it is: serializers also write NaN, for example."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except msgspec.DecodeError:
        return False
    return True


def topic_subject(root: str, topic: TopicId) -> str:
    """`root.topic.HEAD.TAIL`: the tail is what follows the first colon of the type, so that `writer:` is a pattern."""
    return f"{root}.{TOPIC}.{type_tokens(topic.type)}"


def type_tokens(topic_type: str) -> str:
    head, colon, tail = topic_type.partition(":")
    return f"{encode_token(head)}.{f':{encode_token(tail)}' if colon else '='}"


def subjects_of(root: str, types: Iterable[str], subscriptions: Iterable[Subscription]) -> list[str]:
    """The subjects that hold what these subscriptions match and what is sent to agents of these types."""
    patterns = {pattern_of(subscription) for subscription in subscriptions}
    heads = {pattern.partition(".")[0] for pattern in patterns if pattern.endswith(".*")}
    topics = [one for one in patterns if one.endswith(".*") or one.partition(".")[0] not in heads]
    tokens = [encode_token(agent_type) for agent_type in types]
    found = [f"{root}.{DIRECT}.{token}" for token in tokens]
    if len(topics) > MAX_SUBJECTS or ">" in patterns:
        topics = [">"]
    if len(found) > MAX_SUBJECTS:
        found = [f"{root}.{DIRECT}.*"]
    return sorted(found) + sorted(f"{root}.{TOPIC}.{pattern}" for pattern in topics)


def pattern_of(subscription: Subscription) -> str:
    """The tokens of the topics that a subscription may match: all of them, if it is of a kind of its own."""
    if isinstance(subscription, TypeSubscription):
        return type_tokens(subscription.topic_type)
    if isinstance(subscription, TypePrefixSubscription):
        head, colon, rest = subscription.topic_type_prefix.partition(":")
        return f"{encode_token(head)}.*" if colon and not rest else ">"
    return ">"


class RemoteError(Exception):
    """An agent failed in another process with an exception of a type that cannot be raised here."""

    def __init__(self, type: str, text: str) -> None:  # noqa: A002  what it is called everywhere
        super().__init__(f"{type}: {text}")
        self.type = type
        self.text = text


class Failure(Value):
    """An exception, as a reply."""

    type: str
    text: str
    arguments: tuple[str | int | float | bool | None, ...] | None = None


FAILURES = msgspec.json.Decoder(Failure)
RAISABLE = {
    kind.__name__: kind
    for module in (builtins, autogen_core.exceptions)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Exception)
} | {"CancelledError": CancelledError}
"""The types of exceptions that a reply may raise: it comes from another process, and may claim anything."""
MAX_TEXT = 8000


def failure_of(error: BaseException) -> Payload:
    plain = all(isinstance(one, str | int | float | bool | None) for one in error.args)
    text = str(error)[:MAX_TEXT]
    failure = Failure(
        type=type(error).__name__, text=text, arguments=error.args if plain and len(text) < MAX_TEXT else None
    )
    return Payload(type="error", content_type=JSON_DATA_CONTENT_TYPE, data=ENCODER.encode(failure))


def error_of(payload: Payload) -> BaseException:
    """The exception to raise for a failure."""
    try:
        failure = FAILURES.decode(payload.data)
    except msgspec.MsgspecError as error:
        return RemoteError("UnknownError", str(error))
    kind = RAISABLE.get(failure.type)
    if kind is not None and failure.arguments is not None:
        try:
            return kind(*failure.arguments)
        except TypeError:  # one that is made otherwise
            pass
    return RemoteError(failure.type, failure.text)
