"""Requests in and answers out: checked JSON, errors as one sentence with a remedy, and a limit on size."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from septet.domain.codec import ENCODER
from septet.errors import (
    BadUsage,
    Conflict,
    LogDamaged,
    NeedsPerson,
    NoModel,
    SeptetError,
    StoreFailed,
    innermost,
    told,
)

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]
LARGEST_BODY = 1 << 20
STATUSES: tuple[tuple[type[SeptetError], int], ...] = (
    (LogDamaged, 410),
    (StoreFailed, 503),
    (Conflict, 409),
    (NeedsPerson, 409),
    (NoModel, 409),
)


class NotHere(BadUsage):
    """Nothing of that name; a 404."""


class TooLarge(BadUsage):
    """A body over the limit; a 413."""


def json_answer(content: object, status: int = 200) -> Response:
    return Response(
        ENCODER.encode(content),
        status,
        media_type="application/json",
        headers={"cache-control": "no-store"},
    )


def failure(error: SeptetError) -> Response:
    return json_answer({"error": error.cause, "remedy": error.remedy}, status_of(error))


def status_of(error: SeptetError) -> int:
    if isinstance(error, NotHere):
        return 404
    if isinstance(error, TooLarge):
        return 413
    unforeseen = type(error) is SeptetError
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500 if unforeseen else 400)


def answering(endpoint: Endpoint) -> Endpoint:
    """What a person must fix, and what nobody has foreseen, is told as JSON, never as a traceback."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as error:
            if not isinstance(innermost(error), SeptetError):
                logging.getLogger("septet.web").exception("a request could not be answered")
            return failure(told(error))

    return answered


async def body(request: Request, form: msgspec.json.Decoder[T]) -> T:
    """The request's JSON as a checked value."""
    content = bytearray()
    try:
        async for chunk in request.stream():
            content += chunk
            if len(content) > LARGEST_BODY:
                raise TooLarge(f"more than {LARGEST_BODY:,} bytes were sent", "send less")
        return form.decode(bytes(content))
    except ClientDisconnect as error:
        raise BadUsage("the request broke off", "send it again") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadUsage(f"the request is not understood ({error})", "see docs/web.md for its form") from error


def number(text: str, what: str) -> int:
    """A number out of an address; a few digits at most."""
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise BadUsage(f"{what} is '{text[:40]}'", "use a whole number")
    return int(text)
