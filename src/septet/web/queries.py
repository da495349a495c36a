"""What the page reads: the list, logs, versions, differences, archives, search."""

from collections.abc import Mapping

import anyio
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from septet.chat.export_file import FORMATS, document, fetched, packed
from septet.chat.results import result_of
from septet.chat.versions import difference, version_named
from septet.demos.catalogue import demo_names
from septet.domain.codec import encode
from septet.errors import BadUsage, NoModel
from septet.web.app_state import Place
from septet.web.requests import json_answer, number


class Reading:
    def __init__(self, place: Place) -> None:
        self.place = place

    async def chats(self, request: Request) -> Response:
        return json_answer(await self.place.shelf.summaries())

    async def chat(self, request: Request) -> Response:
        """How it stands, in the form that `--json` ends with."""
        return json_answer(result_of(await self.place.shelf.state(request.path_params["chat"])))

    async def events(self, request: Request) -> Response:
        """The log after a sequence: one envelope a line, as `--json` prints them."""
        state = await self.place.shelf.state(request.path_params["chat"])
        after = number(request.query_params.get("after", "0"), "after")
        log = await self.place.session.store.read(state.chat, after)
        lines = (encode(recorded) + b"\n" for recorded in log)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    async def difference(self, request: Request) -> Response:
        state = await self.place.shelf.state(request.path_params["chat"])
        new = version_named(state, request.query_params.get("new", str(len(state.versions))))
        old = version_named(state, request.query_params.get("old", str(max(1, new.number - 1))))
        text = await difference(old, new, self.place.session.blobs)
        return Response(text, media_type="text/plain")

    async def archive(self, request: Request) -> Response:
        """A version's files and, for the newest one, what its runs made, as a zip."""
        state = await self.place.shelf.state(request.path_params["chat"])
        version = version_named(state, request.path_params["version"])
        made: Mapping[str, str] = state.artefacts if version == state.version else {}
        paths = {**made, **{file.path: file.sha256 for file in version.files}}
        contents = await fetched({path: sha for path, sha in paths.items() if sha}, self.place.session.blobs)
        content = await anyio.to_thread.run_sync(packed, contents)
        name = f"{state.chat}-v{version.number}.zip"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type="application/zip", headers=headers)

    async def export(self, request: Request) -> Response:
        state = await self.place.shelf.state(request.path_params["chat"])
        form = request.path_params["form"]
        if form not in FORMATS:
            raise BadUsage(f"there is no export as '{form[:20]}'", f"use {', '.join(FORMATS)}")
        session = self.place.session
        content = await document(await session.store.read(state.chat), form, session.blobs)
        headers = {"content-disposition": f'attachment; filename="{state.chat}.{form}"'}
        kind = "application/zip" if form == "zip" else "text/plain"
        return Response(content, media_type=kind, headers=headers)

    async def search(self, request: Request) -> Response:
        return json_answer(await self.place.index.find(request.query_params.get("q", "")[:200]))

    async def setup(self, request: Request) -> Response:
        """What a new chat can be made with."""
        session, demos = self.place.session, await anyio.to_thread.run_sync(demo_names)
        return json_answer({"teams": list(session.teams), "team": session.team, "demos": demos})

    async def people(self, request: Request) -> Response:
        """Who is where, on many machines; null where everybody is here."""
        return json_answer(await self.place.session.people())

    async def model(self, request: Request) -> Response:
        """What a new chat would think with, and why; looking for one may take a moment."""
        if not self.place.model and self.place.session.elsewhere:
            return json_answer({"name": "own", "reason": "members think with the models of their machines"})
        try:
            choice = await self.place.session.models.choose() if not self.place.model else None
            model = {
                "name": choice.name if choice else self.place.model,
                "reason": choice.reason if choice else "chosen when the server was started",
            }
        except NoModel as error:
            model = {"name": "", "reason": f"{error.cause}: {error.remedy}"}
        return json_answer(model)
