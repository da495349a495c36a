"""What programs made, shown without trusting it: pictures as pictures, the rest as text or behind a fence."""

import re
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from septet.errors import LogDamaged
from septet.ports import Blobs
from septet.web.requests import NotHere

ADDRESS = re.compile(r"[0-9a-f]{64}")
FENCE = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
"""A generated page may look as it likes; it runs nothing, loads nothing and knows nothing of us."""
SHOWN = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "bmp": "image/bmp",
    "svg": "image/svg+xml",
    "html": "text/html",
    "htm": "text/html",
    "pdf": "application/pdf",
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
}
BINARY = "application/octet-stream"
LARGEST_TEXT = 1 << 20


class Artefacts:
    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def show(self, request: Request) -> Response:
        """`/artefacts/SHA256/NAME`; with `?download` it is saved, with `?text` it is read as text."""
        content = await self._content(request.path_params["address"])
        name = request.path_params["name"]
        kind = SHOWN.get(name.rpartition(".")[2].lower(), "")
        if "text" in request.query_params or not kind:
            kind = "text/plain; charset=utf-8" if readable(content) else BINARY
        saved = "download" in request.query_params or kind == BINARY
        headers = {
            "content-security-policy": FENCE,
            "cache-control": "private, max-age=31536000, immutable",
            "content-disposition": f"{'attachment' if saved else 'inline'}; filename*=UTF-8''{file_name(name)}",
        }
        return Response(content, media_type=kind, headers=headers)

    async def _content(self, address: str) -> bytes:
        if not ADDRESS.fullmatch(address):
            raise NotHere("that is no address of a content")
        try:
            return await self._blobs.get(address)
        except LogDamaged as error:
            raise NotHere(error.cause, error.remedy) from error


def file_name(name: str) -> str:
    return quote(name.rpartition("/")[2][-100:], safe="")


def readable(content: bytes) -> bool:
    if b"\0" in content[:LARGEST_TEXT]:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
