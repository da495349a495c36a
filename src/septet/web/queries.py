"""The GET endpoints of the page: chats, logs, diffs, archives, exports, search, and artefacts."""

import re
from collections.abc import Mapping
from urllib.parse import quote

import anyio
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from septet.chat.export_file import FORMATS, document, pack_zip, read_blobs
from septet.chat.results import result_of
from septet.chat.versions import version_diff, version_named
from septet.domain.codec import encode
from septet.errors import BadUsage, LogDamaged, NoModel
from septet.ports import Blobs
from septet.protocols.http import NotFound, json_response
from septet.ways.endings import is_finished
from septet.web.app_state import AppState
from septet.web.requests import parse_whole_number


class Queries:
    def __init__(self, app: AppState) -> None:
        self.app = app

    async def chats(self, request: Request) -> Response:
        """All chats: name, goal, phase, status, versions."""
        return json_response(await self.app.chats.summaries())

    async def chat(self, request: Request) -> Response:
        """The chat's result, in the form in which `--json` prints it."""
        return json_response(result_of(await self.app.chats.state(request.path_params["chat"])))

    async def events(self, request: Request) -> Response:
        """The events after a sequence number, one per line, as `--json` prints them."""
        state = await self.app.chats.state(request.path_params["chat"])
        after = parse_whole_number(request.query_params.get("after", "0"), "after")
        log = await self.app.session.store.read(state.chat, after)
        lines = (encode(recorded) + b"\n" for recorded in log)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    async def difference(self, request: Request) -> Response:
        """A unified diff of two versions: `?old=v1&new=v2`; else of the newest and the one before it."""
        state = await self.app.chats.state(request.path_params["chat"])
        new = version_named(state, request.query_params.get("new", str(len(state.work.versions))))
        old = version_named(state, request.query_params.get("old", str(max(1, new.number - 1))))
        text = await version_diff(old, new, self.app.session.blobs)
        return Response(text, media_type="text/plain")

    async def delivery(self, request: Request) -> Response:
        """What a finished chat would change in the person's folder, file by file."""
        state = await self.app.chats.state(request.path_params["chat"])
        waits = state.base is not None and state.work.version is not None and is_finished(state)
        diffs = await (await self.app.session.delivery(state)).file_diffs() if waits else {}
        files = [{"path": path, "diff": diff} for path, diff in diffs.items()]
        return json_response({"folder": state.workspace, "files": files})

    async def archive(self, request: Request) -> Response:
        """A zip of a version's files and, for the newest version, the artefacts of its runs."""
        state = await self.app.chats.state(request.path_params["chat"])
        version = version_named(state, request.path_params["version"])
        made: Mapping[str, str] = state.work.artefacts if version == state.work.version else {}
        paths = {**made, **{file.path: file.sha256 for file in version.files}}
        contents = await read_blobs({path: sha for path, sha in paths.items() if sha}, self.app.session.blobs)
        content = await anyio.to_thread.run_sync(pack_zip, contents)
        name = f"{state.chat}-v{version.number}.zip"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type="application/zip", headers=headers)

    async def export(self, request: Request) -> Response:
        """The chat as a file: md, html, txt, jsonl or zip."""
        state = await self.app.chats.state(request.path_params["chat"])
        form = request.path_params["form"]
        if form not in FORMATS:
            raise BadUsage(f"there is no export format '{form[:20]}'", f"use {', '.join(FORMATS)}")
        session = self.app.session
        content = await document(await session.store.read(state.chat), form, session.blobs)
        headers = {"content-disposition": f'attachment; filename="{state.chat}.{form}"'}
        kind = "application/zip" if form == "zip" else "text/plain"
        return Response(content, media_type=kind, headers=headers)

    async def search(self, request: Request) -> Response:
        """Where the words of `?q=` were said, in all chats."""
        return json_response(await self.app.search_index.find(request.query_params.get("q", "")[:200]))

    async def people(self, request: Request) -> Response:
        """Who is on which machine; null if all members are on this one."""
        return json_response(await self.app.session.deployment.participants())

    async def model(self, request: Request) -> Response:
        """The model that a new chat would use, and why; finding one may take a moment."""
        if not self.app.model and self.app.session.deployment.remote:
            return json_response({"name": "own", "reason": "members use the models of their machines"})
        try:
            choice = await self.app.session.models.choose() if not self.app.model else None
            model = {
                "name": choice.name if choice else self.app.model,
                "reason": choice.reason if choice else "chosen when the server was started",
            }
        except NoModel as error:
            model = {"name": "", "reason": f"{error.cause}: {error.remedy}"}
        return json_response(model)


ADDRESS = re.compile(r"[0-9a-f]{64}")
SANDBOX_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
)
"""A generated page may use styles, but cannot run scripts, load anything or read our cookies."""
MEDIA_TYPES = {
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
MAX_INSPECTED_BYTES = 1 << 20


class Artefacts:
    """Serves untrusted files that programs made: as pictures, as text, or in a sandboxed page."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def show(self, request: Request) -> Response:
        """`/artefacts/SHA256/NAME`; with `?download` it is saved, with `?text` it is read as text."""
        content = await self._content(request.path_params["address"])
        name = request.path_params["name"]
        kind = MEDIA_TYPES.get(name.rpartition(".")[2].lower(), "")
        if "text" in request.query_params or not kind:
            kind = "text/plain; charset=utf-8" if is_text_content(content) else BINARY
        saved = "download" in request.query_params or kind == BINARY
        headers = {
            "content-security-policy": SANDBOX_POLICY,
            "cache-control": "private, max-age=31536000, immutable",
            "content-disposition": f"{'attachment' if saved else 'inline'}; filename*=UTF-8''{file_name(name)}",
        }
        return Response(content, media_type=kind, headers=headers)

    async def _content(self, address: str) -> bytes:
        if not ADDRESS.fullmatch(address):
            raise NotFound("the address is not a SHA-256 digest", "use a link of the page")
        try:
            return await self._blobs.get(address)
        except LogDamaged as error:
            raise NotFound(error.cause, error.remedy) from error


def file_name(name: str) -> str:
    return quote(name.rpartition("/")[2][-100:], safe="")


def is_text_content(content: bytes) -> bool:
    if b"\0" in content[:MAX_INSPECTED_BYTES]:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
