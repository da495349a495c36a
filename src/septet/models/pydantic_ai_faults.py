"""Which fault an error of pydantic-ai means; nothing of that library's leaves the adapter."""

from collections.abc import Generator
from contextlib import contextmanager

import msgspec
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UserError,
)

from septet.models.faults import (
    Broken,
    Denied,
    Fault,
    Filtered,
    Garbled,
    Limited,
    Refused,
    Stalled,
    TooLong,
    Unreachable,
)
from septet.models.refusals import refusal, shortened

KINDS: tuple[tuple[type[AgentRunError], type[Fault]], ...] = (
    (ContentFilterError, Filtered),
    (ModelContextWindowExceededError, TooLong),
    (ModelQuotaExceededError, Denied),
    (ModelAuthenticationError, Denied),
    (ModelRateLimitError, Limited),
    (ModelUnavailableError, Limited),
    (ModelServerError, Broken),
    (ModelTimeoutError, Stalled),
    (ModelRequestTimeout, Stalled),
    (ModelRequestRejectedError, Refused),
)
"""The first that fits; a provider's HTTP answer is read by its words before."""


@contextmanager
def faults_of_the_library() -> Generator[None, None, None]:
    """Its own tree, and what a provider's library lets through, as faults."""
    try:
        yield
    except Fault:
        raise
    except Exception as error:  # any provider's library may be behind it, each raises its own kinds
        raise fault_behind(error) from error


def fault_behind(error: BaseException) -> Fault:
    """Ours, which a provider's library may have wrapped in its own; else by the kind of the library's."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Fault):
            return cause
        cause = cause.__cause__ or cause.__context__
    match error:
        case UserError():
            return Refused(shortened(str(error)))
        case AgentRunError():
            return fault_of(error)
        case _:
            return Broken(shortened(f"{type(error).__name__}: {error}"))


def fault_of(error: AgentRunError) -> Fault:
    cause = shortened(error.message)
    if isinstance(error, ModelHTTPError) and not isinstance(error, ModelContextWindowExceededError):
        return refusal(error.status_code, error.headers or {}, body_of(error))
    kind = next((fault for known, fault in KINDS if isinstance(error, known)), None)
    if kind is Limited and isinstance(error, ModelAPIError):
        return Limited(cause, error.retry_after)
    if kind is not None:
        return kind(cause)
    if isinstance(error, ModelConnectionError):
        # A request that was read from has begun an answer: it was cut off.
        return Garbled(cause) if error.phase == "read" else Unreachable(cause)
    return Garbled(cause)


def body_of(error: ModelHTTPError) -> bytes:
    return error.body.encode() if isinstance(error.body, str) else msgspec.json.encode(error.body)
