"""What every HTTP surface shares: bodies with a limit, JSON responses, errors as statuses."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from septet.domain.codec import ENCODER
from septet.errors import BadUsage, Conflict, LogDamaged, NeedsPerson, NoModel, SeptetError, StoreFailed

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]
MAX_BODY_BYTES = 1 << 20
STATUSES: tuple[tuple[type[SeptetError], int], ...] = (
    (LogDamaged, 410),
    (StoreFailed, 503),
    (Conflict, 409),
    (NeedsPerson, 409),
    (NoModel, 409),
)


class NotFound(BadUsage):
    """There is no such thing; a 404."""


class TooLarge(BadUsage):
    """A body over the limit; a 413."""


def json_response(content: object, status: int = 200) -> Response:
    return Response(
        ENCODER.encode(content),
        status,
        media_type="application/json",
        headers={"cache-control": "no-store"},
    )


def status_of(error: SeptetError) -> int:
    if isinstance(error, NotFound):
        return 404
    if isinstance(error, TooLarge):
        return 413
    is_unexpected = type(error) is SeptetError
    return next(
        (status for kind, status in STATUSES if isinstance(error, kind)), 500 if is_unexpected else 400
    )


async def decode_body(request: Request, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode and validate the JSON body of a request."""
    content = bytearray()
    try:
        async for chunk in request.stream():
            content += chunk
            if len(content) > MAX_BODY_BYTES:
                raise TooLarge(f"the request body is larger than {MAX_BODY_BYTES:,} bytes", "send less")
        return decoder.decode(bytes(content))
    except ClientDisconnect as error:
        raise BadUsage(
            "the client closed the connection before the request was complete", "send it again"
        ) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadUsage(f"the request is not valid ({error})", "see docs/web.md for its form") from error
