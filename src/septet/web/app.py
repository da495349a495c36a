"""The application: its addresses, behind the guard."""

from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from septet.web.actions import Acting
from septet.web.app_state import Place
from septet.web.artefacts import Artefacts
from septet.web.auth import Door, Guard
from septet.web.queries import Reading
from septet.web.requests import Endpoint, answering
from septet.web.sockets import watch_all

ASSETS = Path(__file__).parent / "assets"


def application(place: Place, door: Door) -> Starlette:
    routes = [
        Route("/", page),
        Route("/chat/{rest:path}", page),
        Mount("/assets", GZipMiddleware(StaticFiles(directory=ASSETS))),
        Mount("/api", routes=api(place)),
        Route("/artefacts/{address}/{name:path}", answering(Artefacts(place.session.blobs).show)),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, door=door)])


def api(place: Place) -> list[Route | WebSocketRoute]:
    reading, acting = Reading(place), Acting(place)
    addresses: list[tuple[str, Endpoint]] = [
        ("/setup", reading.setup),
        ("/model", reading.model),
        ("/people", reading.people),
        ("/search", reading.search),
        ("/chats", reading.chats),
        ("/chats/{chat}", reading.chat),
        ("/chats/{chat}/events", reading.events),
        ("/chats/{chat}/diff", reading.difference),
        ("/chats/{chat}/versions/{version}.zip", reading.archive),
        ("/chats/{chat}/export/{form}", reading.export),
    ]

    async def live(socket: WebSocket) -> None:
        await watch_all(socket, place)

    return [
        Route("/chats", answering(acting.begin), methods=["POST"]),
        Route("/chats/{chat}/acts", answering(acting.act), methods=["POST"]),
        *(Route(address, answering(endpoint)) for address, endpoint in addresses),
        WebSocketRoute("/live", live),
    ]


async def page(request: Request) -> Response:
    """The page reads its own address: one file serves every chat, message and version."""
    return FileResponse(ASSETS / "index.html", headers={"cache-control": "no-cache"})
