"""Envelopes of AutoGen's messages: what is stored as JSON, under which subject, and which exception comes back."""

from asyncio import CancelledError

import msgspec
import pytest
from autogen_core import (
    JSON_DATA_CONTENT_TYPE,
    DefaultSubscription,
    Subscription,
    TopicId,
    TypePrefixSubscription,
    TypeSubscription,
)

from septet.protocols.autogen.envelopes import (
    ENCODER,
    ENVELOPES,
    MAX_SUBJECTS,
    RemoteError,
    error_of,
    failure_of,
    seal,
    subjects_of,
    topic_subject,
)
from septet.protocols.autogen.serialization import Payload, Serializers


@pytest.mark.parametrize(
    ("content_type", "data", "is_plain"),
    [
        (JSON_DATA_CONTENT_TYPE, b'{"a": 1}', True),
        (JSON_DATA_CONTENT_TYPE, b'{"a": NaN}', False),
        (JSON_DATA_CONTENT_TYPE, b"", False),
        ("application/x-protobuf", b'{"a": 1}', False),
    ],
)
def test_json_stands_in_the_envelope_as_it_is_and_anything_else_as_bytes(
    content_type: str, data: bytes, is_plain: bool
) -> None:
    payload = Payload(type="Word", content_type=content_type, data=data, schema="s")
    sealed = seal("publish", "1", payload, topic="t")
    assert (bytes(sealed.data), sealed.data_base64) == ((data, b"") if is_plain else (b"", data))
    assert (sealed.id, sealed.source, sealed.specversion, sealed.topic) == ("1", "septet", "1.0", "t")
    again = ENVELOPES.decode(ENCODER.encode(sealed))
    assert again.payload == payload


def test_a_topic_has_a_subject_of_two_tokens() -> None:
    assert topic_subject("root", TopicId("word", "s")) == "root.topic.word.="
    assert topic_subject("root", TopicId("writer:", "s")) == "root.topic.writer.:="
    assert topic_subject("root", TopicId("writer:a:b", "s")).startswith("root.topic.writer.:a")


def many(count: int) -> list[Subscription]:
    return [TypeSubscription(f"t{number:03}", "agent") for number in range(count)]


@pytest.mark.parametrize(
    ("subscriptions", "subjects"),
    [
        ([], []),
        ([TypeSubscription("b", "x"), TypeSubscription("a", "x")], ["r.topic.a.=", "r.topic.b.="]),
        ([TypePrefixSubscription("a:", "x"), TypeSubscription("a:c", "x")], ["r.topic.a.*"]),
        ([TypePrefixSubscription("a:", "x"), TypeSubscription("b", "x")], ["r.topic.a.*", "r.topic.b.="]),
        ([TypePrefixSubscription("a:c", "x")], ["r.topic.>"]),
        ([TypePrefixSubscription("a", "x"), TypeSubscription("b", "x")], ["r.topic.>"]),
        ([DefaultSubscription("a", "x")], ["r.topic.a.="]),
        (many(MAX_SUBJECTS), [f"r.topic.t{number:03}.=" for number in range(MAX_SUBJECTS)]),
        (many(MAX_SUBJECTS + 1), ["r.topic.>"]),
    ],
)
def test_subjects_are_those_of_the_subscriptions_or_all_if_there_are_many(
    subscriptions: list[Subscription], subjects: list[str]
) -> None:
    assert subjects_of("r", [], subscriptions) == subjects


@pytest.mark.parametrize(("count", "are_all"), [(MAX_SUBJECTS, False), (MAX_SUBJECTS + 1, True)])
def test_agents_are_read_by_their_types_or_all_if_there_are_many(count: int, are_all: bool) -> None:
    names = [f"t{number:03}" for number in range(count)]
    found = subjects_of("r", reversed(names), [])
    assert found == (["r.direct.*"] if are_all else [f"r.direct.{name}" for name in names])


class Odd(Exception):
    """A type of its own."""


@pytest.mark.parametrize(
    "error",
    [ValueError("no", 2, None, True, 1.5), KeyError("k"), CancelledError(), ValueError("x" * 7999)],
)
def test_an_exception_of_a_known_type_comes_back_as_it_was(error: Exception) -> None:
    found = error_of(failure_of(error))
    assert (type(found), found.args) == (type(error), error.args)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (Odd("why"), "Odd", "why"),
        (ValueError("x" * 8000), "ValueError", "x" * 8000),
        (ValueError("x" * 8001), "ValueError", "x" * 8000),
        (ValueError([1]), "ValueError", "[1]"),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "why"), "UnicodeDecodeError", "'utf-8' codec can't decode"),
        (SystemExit(3), "SystemExit", "3"),
    ],
)
def test_any_other_exception_comes_back_by_its_type_and_text(
    error: BaseException, kind: str, text: str
) -> None:
    found = error_of(failure_of(error))
    assert isinstance(found, RemoteError)
    assert found.type == kind
    assert found.text.startswith(text)
    assert str(found) == f"{found.type}: {found.text}"
    assert len(found.text) <= 8000


def test_what_cannot_be_made_of_its_arguments_or_read_comes_back_by_its_text() -> None:
    wrong = msgspec.json.encode({"type": "UnicodeDecodeError", "text": "why", "arguments": ["x"]})
    found = error_of(Payload(type="error", content_type=JSON_DATA_CONTENT_TYPE, data=wrong))
    assert isinstance(found, RemoteError)
    assert (found.type, found.text) == ("UnicodeDecodeError", "why")
    unread = error_of(Payload(type="error", content_type=JSON_DATA_CONTENT_TYPE, data=b"{"))
    assert isinstance(unread, RemoteError)
    assert unread.type == "UnknownError"


def test_plain_values_are_json_and_what_is_no_json_is_refused() -> None:
    serializers = Serializers()
    sent = serializers.encode({"a": [1, None]})
    assert (sent.type, sent.content_type, sent.data) == ("dict", JSON_DATA_CONTENT_TYPE, b'{"a": [1, null]}')
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        serializers.encode(float("nan"))
    with pytest.raises(ValueError, match="Unknown type Odd: add a serializer with add_message_serializer"):
        serializers.encode(Odd())
