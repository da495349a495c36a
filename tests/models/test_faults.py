"""Error answers as servers really word them, and the fault that each of them means."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.models.faults import (
    MAX_CAUSE,
    AccessDenied,
    ContentFiltered,
    ContextExceeded,
    ErrorBody,
    Fault,
    FeatureMissing,
    RateLimited,
    RequestRejected,
    ServerError,
    error_text,
    fault_in_stream,
    fault_of_response,
    retry_after,
)

CASES: list[tuple[int, str, type[Fault]]] = [
    (400, '{"error": {"message": "maximum context length is 8192", "code": "x"}}', ContextExceeded),
    (
        400,
        '{"error": {"code": 400, "message": "the request exceeds the available context size"}}',
        ContextExceeded,
    ),
    (400, '{"type": "error", "error": {"message": "prompt is too long: 210000 tokens"}}', ContextExceeded),
    (400, '{"error": {"code": "content_filter", "message": "the response was filtered"}}', ContentFiltered),
    (400, '{"error": "library/gemma:2b does not support tools"}', FeatureMissing),
    (500, '{"error": {"code": 500, "message": "tools param requires --jinja flag"}}', FeatureMissing),
    (400, '{"error": {"message": "response_format json_schema is not supported here"}}', FeatureMissing),
    (401, '{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}', AccessDenied),
    (429, '{"error": {"message": "Over quota", "code": "insufficient_quota"}}', AccessDenied),
    (429, '{"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}', RateLimited),
    (529, '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}', RateLimited),
    (503, "<html><h1>Service Unavailable</h1></html>", RateLimited),
    (502, "<html><h1>Bad Gateway</h1></html>", ServerError),
    (404, '{"error": {"message": "The model `gpt-9` does not exist"}}', RequestRejected),
    (422, '{"detail": [{"msg": "field required"}]}', RequestRejected),
    (400, '{"error": {"message": "image_url is only supported by certain models."}}', FeatureMissing),
    (
        500,
        '{"error": {"message": "image input is not supported - hint: provide the mmproj"}}',
        FeatureMissing,
    ),
    (400, '{"error": {"message": "At most 0 image(s) may be provided in one request."}}', FeatureMissing),
    (400, '{"error": {"message": "gemma-2b is not a multimodal model"}}', FeatureMissing),
    (400, '{"error": {"message": "This model doesn\'t support the image content block."}}', FeatureMissing),
    (400, '{"error": {"message": "Image input is not allowed for this model"}}', FeatureMissing),
    (400, '{"error": {"message": "this is a text-only model, images cannot be used"}}', FeatureMissing),
    (400, '{"error": {"message": "unknown variant `image_url`, expected `text`"}}', FeatureMissing),
    (301, "", RequestRejected),
    (408, "", ServerError),
    (409, "", ServerError),
    (410, "", RequestRejected),
    (425, "", ServerError),
    (500, "", ServerError),
    (499, "", RequestRejected),
    (402, "", AccessDenied),
    (403, "", AccessDenied),
    (400, "x" * 19_980 + "context window", ContextExceeded),
    (400, "x" * 19_990 + "context window", RequestRejected),
]


@pytest.mark.parametrize(("status", "body", "expected"), CASES)
def test_the_words_of_a_server_lead_to_the_right_fault(status: int, body: str, expected: type[Fault]) -> None:
    fault = fault_of_response(status, {}, body.encode())
    assert type(fault) is expected
    assert "\n" not in fault.cause
    assert "<" not in fault.cause


def test_a_lacking_feature_is_named() -> None:
    fault = fault_of_response(400, {}, b'{"error": "this model does not support tools"}')
    assert isinstance(fault, FeatureMissing)
    assert fault.feature == "tools"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Sun, 15 Nov 2026 10:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 15 Nov 2026 09:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_how_long_the_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, datetime(2026, 11, 15, 10, 0, tzinfo=UTC)) == seconds


@given(status=st.integers(300, 599), body=st.binary(max_size=400), after=st.text(max_size=20))
def test_any_error_answer_at_all_is_some_fault(status: int, body: bytes, after: str) -> None:
    fault = fault_of_response(status, {"retry-after": after}, body)
    assert fault.cause


@given(body=st.binary(max_size=2000))
def test_what_was_said_is_one_short_line(body: bytes) -> None:
    assert len(error_text(body)) <= MAX_CAUSE
    assert "\n" not in error_text(body)


def test_an_error_inside_a_stream() -> None:
    assert type(fault_in_stream(ErrorBody(message="Overloaded", type="overloaded_error"))) is RateLimited
    assert type(fault_in_stream("CUDA error")) is ServerError
    assert type(fault_in_stream(ErrorBody(message="over the maximum context length"))) is ContextExceeded
