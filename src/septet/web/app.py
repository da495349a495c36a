"""The web application: its routes, behind authentication."""

from pathlib import Path

import anyio
import anyio.abc
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from septet.protocols.http import Endpoint, json_response
from septet.protocols.openai_api import OpenAiApi
from septet.web.actions import Actions
from septet.web.app_state import AppState
from septet.web.auth import Access, AuthMiddleware
from septet.web.queries import Artefacts, Queries
from septet.web.requests import with_error_responses
from septet.web.sockets import serve_socket

ASSETS = Path(__file__).parent / "assets"


def application(app: AppState, access: Access) -> Starlette:
    routes = [
        Route("/", serve_page),
        Route("/chat/{rest:path}", serve_page),
        Mount("/assets", GZipMiddleware(StaticFiles(directory=ASSETS))),
        Mount("/api", routes=api(app)),
        Mount("/v1", routes=OpenAiApi(app.service).routes()),
        Route("/mcp", McpEndpoint(app)),
        Route("/artefacts/{address}/{name:path}", with_error_responses(Artefacts(app.session.blobs).show)),
    ]
    return Starlette(routes=routes, middleware=[Middleware(AuthMiddleware, access=access)])


class McpEndpoint:
    """MCP by streamable HTTP, imported and opened with the first request: the page needs none of it."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self._endpoint: ASGIApp | None = None
        self._opening = anyio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._opening:
            endpoint = self._endpoint or await self._app.tasks.start(self._serve)
            self._endpoint = endpoint
        await endpoint(scope, receive, send)

    async def _serve(self, task_status: anyio.abc.TaskStatus[ASGIApp]) -> None:
        try:
            from septet.protocols.mcp_server import open_http_endpoint
        except ImportError:
            missing = {"error": "the server lacks the mcp package", "remedy": "pip install 'septet[mcp]'"}
            task_status.started(json_response(missing, 501))
            return
        async with open_http_endpoint(self._app.service) as endpoint:
            task_status.started(endpoint)
            await anyio.sleep_forever()


def api(app: AppState) -> list[Route | WebSocketRoute]:
    queries, actions = Queries(app), Actions(app)
    routes: list[tuple[str, Endpoint]] = [
        ("/setup", queries.setup),
        ("/model", queries.model),
        ("/people", queries.people),
        ("/search", queries.search),
        ("/chats", queries.chats),
        ("/chats/{chat}", queries.chat),
        ("/chats/{chat}/events", queries.events),
        ("/chats/{chat}/diff", queries.difference),
        ("/chats/{chat}/delivery", queries.delivery),
        ("/chats/{chat}/versions/{version}.zip", queries.archive),
        ("/chats/{chat}/export/{form}", queries.export),
    ]

    async def live(socket: WebSocket) -> None:
        await serve_socket(socket, app)

    return [
        Route("/chats", with_error_responses(actions.create_chat), methods=["POST"]),
        Route("/chats/{chat}/acts", with_error_responses(actions.act), methods=["POST"]),
        *(Route(path, with_error_responses(endpoint)) for path, endpoint in routes),
        WebSocketRoute("/live", live),
    ]


async def serve_page(request: Request) -> Response:
    """The page reads its own address: one file serves every chat, message and version."""
    return FileResponse(ASSETS / "index.html", headers={"cache-control": "no-cache"})
