"""The ways in which a model's service can fail: a small closed set by which the wrappers decide what to do.

Fault                     never leaves this package: `error_for` turns it into ModelFailed or NoModel
├── TransientFault        a retry may help
│   ├── RateLimited       429, 503 or 529: wait, `retry_after` seconds if the server said so
│   ├── ServerError       a 5xx answer
│   ├── ConnectionFailed  the name does not resolve, or there is no connection, or it was lost
│   ├── TimedOut          connected, but no data for too long
│   ├── InvalidAnswer     cut off, malformed, empty, HTML, not UTF-8, or without a finish reason
│   └── AnswerTooLarge    larger than the limit
├── ContextExceeded       the request does not fit the model's context: send a shorter one
├── ContentFiltered       the provider's filter blocked the answer: another model may give one
├── FeatureMissing        the server has no tools, no schemas or no image input: express it in text
├── RequestRejected       the server will never accept this request
└── AccessDenied          a missing, wrong or exhausted key: only a person can help
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

import msgspec

from septet.common.patterns import LazyPattern
from septet.errors import ModelFailed, NoModel, SeptetError

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Raised by decoding invalid JSON: malformed, not UTF-8, or nested too deeply."""

Feature = Literal["tools", "schema", "images"]


class Fault(Exception):
    """`remedy` tells the person what to do."""

    remedy = "resume the chat later"

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


class TransientFault(Fault):
    pass


class RateLimited(TransientFault):
    def __init__(self, cause: str, after: float | None = None) -> None:
        super().__init__(cause)
        self.retry_after = after


class ServerError(TransientFault):
    pass


class ConnectionFailed(TransientFault):
    remedy = "check the address and the network, then resume the chat"


class TimedOut(TransientFault):
    pass


class InvalidAnswer(TransientFault):
    pass


class AnswerTooLarge(TransientFault):
    remedy = "resume the chat, or raise the limit (SEPTET_LONGEST_ANSWER, in MiB)"


class ContextExceeded(Fault):
    remedy = "resume the chat with a model that has a larger context"


class ContentFiltered(Fault):
    remedy = "rephrase it or resume the chat with another model"


class FeatureMissing(Fault):
    remedy = "resume the chat with another model"

    def __init__(self, feature: Feature, cause: str) -> None:
        super().__init__(cause)
        self.feature: Feature = feature


class RequestRejected(Fault):
    remedy = "check the model's name and address"


class AccessDenied(Fault):
    remedy = "set a valid key: septet login"


MAX_CAUSE = 300

TOO_LONG = LazyPattern(
    r"context_length_exceeded|exceed_context_size|maximum context length|context (length|window|size)"
    r"|prompt is too long|too many tokens|input is too long|exceeds the available context",
    re.IGNORECASE,
)
FILTERED = LazyPattern(r"content_filter|content management policy|ResponsibleAIPolicy", re.IGNORECASE)
EXHAUSTED = LazyPattern(r"insufficient_quota|credit balance|billing", re.IGNORECASE)
BUSY = LazyPattern(r"overloaded|rate.?limit|too many requests|server is busy", re.IGNORECASE)
NOT_SUPPORTED = LazyPattern(
    r"not support|n't support|unsupported|does not have|not enabled|requires --|not available|unknown|unrecognized"
    r"|only supported by|missing data required|no endpoints found|not allowed|not a multimodal|at most 0|text.only",
    re.IGNORECASE,
)
TOOLS = LazyPattern(r"\btools?\b|tool_choice|function.?call|--jinja", re.IGNORECASE)
IMAGES = LazyPattern(r"image_url|image input|\bimages?\b|vision|multimodal", re.IGNORECASE)
SCHEMA = LazyPattern(r"response_format|json_schema|structured output|output_format", re.IGNORECASE)


class ErrorBody(msgspec.Struct):
    message: str = ""
    code: str | int | None = None
    type: str | None = None


class ErrorAnswer(msgspec.Struct):
    error: ErrorBody | str | None = None
    detail: object = None
    message: str = ""


def fault_of_response(status: int, headers: Mapping[str, str], body: bytes) -> Fault:
    """Classify an answer whose status is not 200."""
    cause = f"the server answered {status}: {error_text(body)}"
    text = body[:20_000].decode(errors="replace")
    if status in (429, 503, 529):
        return AccessDenied(cause) if EXHAUSTED.search(text) else RateLimited(cause, retry_after(headers))
    if status >= 500 or status in (408, 409, 425):
        fault = fault_of_rejection(text, cause)
        return fault if isinstance(fault, ContextExceeded | FeatureMissing) else ServerError(cause)
    if status in (401, 402, 403):
        return AccessDenied(cause)
    return fault_of_rejection(text, cause)


def fault_of_rejection(text: str, cause: str) -> Fault:
    """Classify a rejected request by the text of the error."""
    if TOO_LONG.search(text):
        return ContextExceeded(cause)
    if FILTERED.search(text):
        return ContentFiltered(cause)
    if NOT_SUPPORTED.search(text):
        if SCHEMA.search(text):
            return FeatureMissing("schema", cause)
        if IMAGES.search(text):
            return FeatureMissing("images", cause)
        if TOOLS.search(text):
            return FeatureMissing("tools", cause)
    return RequestRejected(cause)


def fault_in_stream(error: ErrorBody | str) -> Fault:
    """Classify an error that arrives inside a stream."""
    body = ErrorBody(message=error) if isinstance(error, str) else error
    text = f"{body.message} {body.code} {body.type}"
    cause = f"the server stopped with an error: {body.message or text}"[:MAX_CAUSE]
    if BUSY.search(text):
        return RateLimited(cause)
    fault = fault_of_rejection(text, cause)
    return ServerError(cause) if isinstance(fault, RequestRejected) else fault


def error_text(body: bytes) -> str:
    """The message of an error answer, on one short line."""
    try:
        answer = msgspec.json.decode(body, type=ErrorAnswer)
    except DECODE_ERRORS:
        return one_line(body.decode(errors="replace"))
    error = answer.error
    if isinstance(error, ErrorBody):
        return one_line(error.message or str(error.code or error.type))
    return one_line(error or answer.message or str(answer.detail or "") or body.decode(errors="replace"))


def one_line(text: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())[:MAX_CAUSE] or "nothing"


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The seconds that the server asks to wait; the headers give milliseconds, seconds or a date."""
    if milliseconds := parse_number(headers.get("retry-after-ms", "")):
        return milliseconds / 1000
    after = headers.get("retry-after", "")
    if (seconds := parse_number(after)) is not None:
        return seconds
    try:
        moment = parsedate_to_datetime(after)
    except ValueError:
        return None
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())


def parse_number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text.strip()) else None


def error_for(fault: Fault, name: str) -> SeptetError:
    """NoModel (exit 5) if only a person can help, ModelFailed (exit 75) if the chat can be resumed as it is."""
    kind = NoModel if isinstance(fault, AccessDenied | RequestRejected) else ModelFailed
    return kind(f"{name}: {fault.cause}", fault.remedy)
