"""What every HTTP surface shares: bodies with a limit, JSON responses, errors as statuses."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from septet.domain.codec import ENCODER
from septet.errors import BadUsage, Conflict, LogDamaged, NeedsPerson, NoModel, SeptetError, StoreFailed
from septet.settings.home import Home

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]
MAX_BODY_BYTES = 1 << 20
MCP_PATH = "/mcp"
A2A_PATH = "/a2a"
CARD_PATH = "/.well-known/agent-card.json"
INVALID_REQUEST = -32600
"""JSON-RPC's code of a request that is not taken."""
RPC_CODES = {400: -32700, 404: -32601}
STATUS_NAMES = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 413: "RESOURCE_EXHAUSTED"}
STATUSES: tuple[tuple[type[SeptetError], int], ...] = (
    (LogDamaged, 410),
    (StoreFailed, 503),
    (Conflict, 409),
    (NeedsPerson, 409),
    (NoModel, 409),
)


def push_file(home: Home) -> Path:
    """Where the addresses are kept that want notifications of A2A."""
    return home.data / "a2a-push.json"


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
        raise BadUsage(
            f"the request is not valid ({error})", "see docs/protocols.md or docs/web.md"
        ) from error


def rpc_error(status: int, text: str) -> object:
    """The error of a JSON-RPC request that is not taken."""
    code = RPC_CODES.get(status, INVALID_REQUEST)
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}}


def a2a_error(path: str, status: int, text: str) -> object:
    """The same by the binding of A2A that the path belongs to: JSON-RPC, or HTTP with JSON."""
    if path.rstrip("/") == A2A_PATH:
        return rpc_error(status, text)
    name = STATUS_NAMES.get(status, "INVALID_ARGUMENT")
    return {"error": {"code": status, "status": name, "message": text}}
