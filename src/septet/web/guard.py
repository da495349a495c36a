"""The middleware in front of everything: host, origin, cookie, and the headers that fence the page in."""

from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from septet.web.door import Door, same_origin

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "frame-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), usb=()",
}
CLOSED = """<!doctype html><html lang="en"><meta charset="utf-8"><title>septet</title>
<h1>This page is private</h1>
<p>Open the address that <code>septet web</code> printed. Each address opens one browser, once: start
<code>septet web</code> again for another. If you came here by a link and had it open already, reload.</p></html>
"""
SAFE = ("GET", "HEAD")
REFUSED_SOCKET = 4403


class Guard:
    def __init__(self, app: ASGIApp, door: Door) -> None:
        self.app = app
        self.door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refusal = self.refusal(scope)
        if refusal is None:
            await self.app(scope, receive, fenced(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": REFUSED_SOCKET})
        else:
            await refusal(scope, receive, fenced(send))

    def refusal(self, scope: Scope) -> Response | None:
        """What to answer instead of the application; nothing for somebody who may come in."""
        headers = Headers(scope=scope)
        if not self.door.knows(headers.get("host", "")):
            return PlainTextResponse("this host name is not served here\n", 421)
        acting = scope["type"] == "websocket" or scope["method"] not in SAFE
        if not same_origin(headers, must=acting):
            return PlainTextResponse("this origin may not act here\n", 403)
        if scope["type"] == "http" and (entered := self.entered(scope)) is not None:
            return entered
        if self.door.recognises(headers, cookie_parser(headers.get("cookie", ""))):
            return None
        return HTMLResponse(CLOSED, 401)

    def entered(self, scope: Scope) -> Response | None:
        """A token in the address becomes a cookie and vanishes from the address."""
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = next((value for name, value in asked if name == "token"), None)
        if token is None or scope["method"] != "GET" or not self.door.admits(token):
            return None
        rest = urlencode([(name, value) for name, value in asked if name != "token"])
        path = "/" + scope["path"].lstrip("/")
        response = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        response.headers["set-cookie"] = self.door.stamp()
        response.headers["cache-control"] = "no-store"
        return response


def fenced(send: Send) -> Send:
    """Every answer carries the fence; an artefact brings a narrower policy of its own."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
