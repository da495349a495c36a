"""Histories encoded once: what is sent never depends on what was sent before."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.asking import Open, ask, open_anthropic, open_openai, question
from msgspec.structs import replace

from septet.domain.messages import Message, Request
from septet.models.encoding import HistoryCache
from septet.models.http import HttpClient
from septet.models.providers.anthropic import anthropic_options
from septet.models.providers.openai import openai_options
from septet.testing.server import MockServer, serve_mock

pytestmark = pytest.mark.anyio

MESSAGES = st.builds(Message, role=st.sampled_from(["user", "assistant"]), text=st.sampled_from("abc"))
HISTORIES = st.lists(st.lists(MESSAGES, max_size=6).map(tuple), min_size=1, max_size=6)


async def encode(before: Message | None, message: Message) -> bytes:
    return (b"" if before is None else before.text.encode() + b">") + message.text.encode()


def plain(messages: tuple[Message, ...]) -> bytes:
    return b"".join(
        (messages[at - 1].text + ">" if at else "").encode() + message.text.encode()
        for at, message in enumerate(messages)
    )


@given(histories=HISTORIES)
async def test_any_row_of_histories_is_encoded_as_if_each_were_the_first(
    histories: list[tuple[Message, ...]],
) -> None:
    kept = HistoryCache(encode)
    for messages in histories:
        assert await kept.encode("coder", messages) == plain(messages)


async def test_only_new_messages_are_encoded() -> None:
    encoded: list[str] = []

    async def count(before: Message | None, message: Message) -> bytes:
        encoded.append(message.text)
        return await encode(before, message)

    kept = HistoryCache(count)
    long = tuple(Message(role="user", text=str(n)) for n in range(100))
    for length in range(1, 101):
        await kept.encode("coder", long[:length])
        await kept.encode("reviewer", long[:1])
    assert len(encoded) == 101


@pytest.mark.parametrize("opened", [open_openai, open_anthropic])
async def test_two_roles_do_not_disturb_each_other(opened: Open) -> None:
    async with serve_mock() as server, HttpClient() as wire:
        model = opened(server, wire, None)
        for texts in (("a",), ("a", "b", "c"), ("x",), ("a", "b", "c", "d", "e")):
            for role in ("coder", "reviewer"):
                await ask(model, question(*texts, role=role))
                assert said(server)[-len(texts) :] == list(texts)


def said(server: MockServer) -> list[str]:
    """The text of each message of the newest request, whichever wire it came over."""
    found: list[str] = []
    for message in server.seen[-1].messages:
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        found += [str(part["text"]) for part in msgspec.convert(parts, list[dict[str, object]])]
    return found


def test_the_temperature_of_a_member_is_on_every_wire_and_none_without_one() -> None:
    asked = Request(role="coder", step=1, messages=(Message(role="user", text="hi"),))
    warm = replace(asked, temperature=0.3)
    assert openai_options(warm, "m", frozenset())["temperature"] == 0.3
    assert anthropic_options(warm, "m", 9)["temperature"] == 0.3
    assert anthropic_options(replace(asked, temperature=1.7), "m", 9)["temperature"] == 1.0, "its highest"
    assert openai_options(replace(asked, temperature=0.0), "m", frozenset())["temperature"] == 0.0
    for fields in (
        openai_options(asked, "m", frozenset()),
        openai_options(warm, "m", frozenset({"temperature"})),
        anthropic_options(asked, "m", 9),
    ):
        assert "temperature" not in fields
