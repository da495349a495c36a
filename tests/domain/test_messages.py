"""What a request takes by estimate: more for more, never nothing, and not more than its bytes allow."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from septet.domain.messages import (
    BYTES_PER_TOKEN,
    TOKENS_PER_MESSAGE,
    TOKENS_PER_PICTURE,
    Message,
    Price,
    Request,
    ToolCall,
    ToolOffer,
    Usage,
    estimate_usage,
    text_tokens,
)

TEXTS = st.text(max_size=300)
CALLS = st.builds(ToolCall, id=st.just("1"), name=TEXTS, arguments=TEXTS)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(("system", "user", "assistant", "tool")),
    text=TEXTS,
    images=st.lists(st.just("a" * 64), max_size=3).map(tuple),
    calls=st.lists(CALLS, max_size=2).map(tuple),
)
OFFERS = st.builds(ToolOffer, name=TEXTS, description=TEXTS, parameters=st.just({"type": "object"}))
REQUESTS = st.builds(
    Request,
    role=st.just("coder"),
    step=st.just(1),
    messages=st.lists(MESSAGES, max_size=4).map(tuple),
    tools=st.lists(OFFERS, max_size=3).map(tuple),
    schema=st.none() | st.just({"type": "object", "required": ["answer"]}),
    max_tokens=st.none() | st.integers(1, 100_000),
)


@given(TEXTS, TEXTS)
def test_a_longer_text_takes_more_and_two_texts_not_less_than_one(one: str, other: str) -> None:
    assert text_tokens(one) <= text_tokens(one + other) <= text_tokens(one) + text_tokens(other)
    assert bool(text_tokens(one)) == bool(one)


@given(st.text(st.characters(max_codepoint=127), max_size=300))
def test_no_text_takes_more_tokens_than_it_has_bytes(text: str) -> None:
    assert len(text) / BYTES_PER_TOKEN <= text_tokens(text) <= len(text)


@given(REQUESTS, MESSAGES)
def test_one_message_more_adds_what_it_takes_alone(request: Request, message: Message) -> None:
    alone = estimate_usage(Request(role="coder", step=1, messages=(message,))).prompt
    more = replace(request, messages=(*request.messages, message))
    assert estimate_usage(more).prompt == estimate_usage(request).prompt + alone
    assert alone >= TOKENS_PER_MESSAGE + TOKENS_PER_PICTURE * len(message.images) + text_tokens(message.text)


@given(REQUESTS, OFFERS)
def test_a_tool_that_is_offered_is_paid_for(request: Request, offer: ToolOffer) -> None:
    more = replace(request, tools=(*request.tools, offer))
    assert estimate_usage(more).prompt > estimate_usage(request).prompt


@given(REQUESTS)
def test_the_answer_is_as_long_as_it_may_be_and_nothing_is_cached(request: Request) -> None:
    found = estimate_usage(request)
    assert found.completion == (request.max_tokens or 0)
    assert found.cached == 0
    if request.schema:
        assert found.prompt > estimate_usage(replace(request, schema=None)).prompt


def test_a_text_that_is_no_text_at_all_still_counts() -> None:
    assert text_tokens("\ud800" * 6) > 0


def test_a_price_is_per_million_tokens_of_each_kind() -> None:
    assert Price(prompt=2.0, completion=10.0).of(Usage(prompt=500_000, completion=100_000)) == 2.0
