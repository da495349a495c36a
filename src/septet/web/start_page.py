"""The endpoints of the first page: teams, demos, models, keys, downloads of models, and folders to work in."""

from pathlib import Path
from typing import Annotated

import anyio
from msgspec import Meta
from msgspec.json import Decoder
from starlette.requests import Request
from starlette.responses import Response

from septet.chat.names import chat_title
from septet.common.demo_scripts import demo_names
from septet.common.hosts import is_loopback
from septet.common.values import Value
from septet.demos.catalogue import load_demo
from septet.errors import BadConfig, BadUsage, SeptetError, as_septet_error
from septet.protocols.http import decode_body, json_response
from septet.web.app_state import AppState
from septet.web.requests import Name
from septet.wiring.models import Models, Overview

MAX_FOLDERS = 500


class DemoView(Value, omit_defaults=False):
    """A demo as the first page offers it."""

    name: str
    title: str
    goal: str
    team: str


class DownloadView(Value, omit_defaults=False):
    """A download of an embedded model: bytes that are here, bytes in all, and why it ended without a model."""

    name: str
    here: int = 0
    whole: int = 0
    error: str = ""


class ModelsView(Value, omit_defaults=False):
    """What a new chat can be asked to use; `providers` take a key, and `runtime` says why no embedded model runs."""

    overview: Overview
    providers: tuple[str, ...]
    download: DownloadView | None
    runtime: str


class FolderView(Value, omit_defaults=False):
    """A folder and those in it; `repository` tells that git keeps its history."""

    path: str
    parent: str
    repository: bool
    folders: tuple[str, ...]


class NewKey(Value, forbid_unknown_fields=True):
    provider: Name
    key: Annotated[str, Meta(min_length=1, max_length=2000)]


class NewDownload(Value, forbid_unknown_fields=True):
    name: Name


KEY_DECODER: Decoder[NewKey] = Decoder(NewKey)
DOWNLOAD_DECODER: Decoder[NewDownload] = Decoder(NewDownload)


class StartPage:
    def __init__(self, app: AppState) -> None:
        self.app = app
        self._download: DownloadView | None = None

    @property
    def models_of_session(self) -> Models:
        return self.app.session.models

    async def setup(self, request: Request) -> Response:
        """The teams and demos for a new chat."""
        session, demos = self.app.session, await anyio.to_thread.run_sync(demo_views)
        teams = {"teams": list(session.teams), "team": session.default_team}
        return json_response({**teams, "demos": demos, "home": str(Path.home())})

    async def models(self, request: Request) -> Response:
        known = self.models_of_session
        missing = known.runtime_error()
        view = ModelsView(
            overview=await known.overview(),
            providers=known.providers_with_keys(),
            download=self._download,
            runtime=missing.cause if missing else "",
        )
        return json_response(view)

    async def store_key(self, request: Request) -> Response:
        """Store a key that the provider accepts. Only from this machine, since the page has no TLS of its own."""
        new = await decode_body(request, KEY_DECODER)
        if request.client is None or not is_loopback(request.client.host):
            raise BadUsage(
                "keys are stored from this machine only", f"run septet login {new.provider[:40]} there"
            )
        if not new.key.strip().isprintable():
            raise BadUsage("this is not a key", "copy the whole key, without a line end")
        known = self.models_of_session
        try:
            answer = await known.check_key(new.provider, new.key.strip())
        except BadConfig as refused:  # an answer of the provider, not a fault of the request
            return json_response({"stored": "", "answer": f"{refused.cause}: nothing was stored"})
        known.store_key(new.provider, new.key.strip())
        return json_response({"stored": str(known.keys.path), "answer": answer})

    async def download(self, request: Request) -> Response:
        """Download an embedded model in the background; `models` tells how far it is."""
        new = await decode_body(request, DOWNLOAD_DECODER)
        known = self.models_of_session
        entry = known.embedded.find(new.name)
        known.check_runtime()
        if self._download is None or self._download.error:
            self._download = DownloadView(name=entry.name, whole=entry.size)
            self.app.tasks.start_soon(self._fetch, entry.name)
        return json_response(self._download, 202)

    async def _fetch(self, name: str) -> None:
        def progress(here: int, whole: int) -> None:
            self._download = DownloadView(name=name, here=here, whole=whole)

        try:
            await self.models_of_session.embedded.fetch(name, progress, lambda _: None)
            self._download = None
        except (SeptetError, OSError, ExceptionGroup) as error:
            known = as_septet_error(error)
            self._download = DownloadView(name=name, error=f"{known.cause}: {known.remedy}")

    async def folders(self, request: Request) -> Response:
        """The folders in a folder, by default in the person's home; hidden ones are left out."""
        asked = request.query_params.get("path", "")
        return json_response(await anyio.to_thread.run_sync(folder_view, asked))


def demo_views() -> list[DemoView]:
    views: list[DemoView] = []
    for name in demo_names():
        script = load_demo(name)
        views.append(DemoView(name=name, title=chat_title(script.goal), goal=script.goal, team=script.team))
    return views


def folder_view(path: str) -> FolderView:
    try:
        folder = (Path(path).expanduser() if path else Path.home()).resolve(strict=True)
        names = sorted(
            (one.name for one in folder.iterdir() if one.is_dir() and not one.name.startswith(".")),
            key=str.casefold,
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise BadUsage(f"the folder '{path[:200]}' cannot be listed", "name another one") from error
    return FolderView(
        path=str(folder),
        parent=str(folder.parent),
        repository=(folder / ".git").exists(),
        folders=tuple(names[:MAX_FOLDERS]),
    )
