"""The web application: its routes, behind authentication."""

from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from septet.protocols.http import A2A_PATH, CARD_PATH, MCP_PATH, Endpoint, json_response
from septet.protocols.openai_api import OpenAiApi
from septet.web.actions import Actions
from septet.web.app_state import AppState
from septet.web.auth import Access, AuthMiddleware, missing_page
from septet.web.queries import Artefacts, Queries
from septet.web.requests import with_error_responses
from septet.web.sockets import serve_socket
from septet.web.start_page import StartPage

ASSETS = Path(__file__).parent / "assets"


def application(app: AppState, access: Access) -> Starlette:
    routes = [
        Route("/", serve_page),
        Route("/chat/{rest:path}", serve_page),
        Mount("/assets", GZipMiddleware(StaticFiles(directory=ASSETS))),
        Mount("/api", routes=api(app)),
        Mount("/v1", routes=OpenAiApi(app.service).routes()),
        Route(MCP_PATH, app.mcp),
        *(Route(path, app.a2a) for path in (A2A_PATH, f"{A2A_PATH}/{{rest:path}}", CARD_PATH)),
        Route("/artefacts/{address}/{name:path}", with_error_responses(Artefacts(app.session.blobs).show)),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(AuthMiddleware, access=access)],
        exception_handlers={404: missing},
    )


async def missing(request: Request, _: Exception) -> Response:
    """A page for people, JSON for programs."""
    if request.url.path.startswith("/api/"):
        return json_response({"error": "there is no such address", "remedy": "see docs/web.md"}, 404)
    return missing_page()


def api(app: AppState) -> list[Route | WebSocketRoute]:
    queries, actions, start = Queries(app), Actions(app), StartPage(app)
    routes: list[tuple[str, Endpoint]] = [
        ("/setup", start.setup),
        ("/models", start.models),
        ("/folders", start.folders),
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
        Route("/keys", with_error_responses(start.store_key), methods=["POST"]),
        Route("/models/download", with_error_responses(start.download), methods=["POST"]),
        Route("/chats/{chat}/acts", with_error_responses(actions.act), methods=["POST"]),
        *(Route(path, with_error_responses(endpoint)) for path, endpoint in routes),
        WebSocketRoute("/live", live),
    ]


async def serve_page(request: Request) -> Response:
    """The page reads its own address: one file serves every chat, message and version."""
    return FileResponse(ASSETS / "index.html", headers={"cache-control": "no-cache"})
