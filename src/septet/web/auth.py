"""Authentication: a known host name, our own page as the origin, and a token that is exchanged for a cookie."""

import base64
import hashlib
import hmac
import ipaddress
import os
import re
import secrets
from pathlib import Path
from time import time
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from septet.common.text import pluralize
from septet.errors import BadUsage, StoreFailed
from septet.protocols.http import A2A_PATH, CARD_PATH, MCP_PATH, a2a_error, json_response, rpc_error
from septet.protocols.openai_api import refusal_content

COOKIE_SECONDS = 30 * 24 * 3600
MIN_TOKEN_LENGTH = 16
HOST_HEADER = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:]+))(?::\d{1,5})?")


class Access:
    """Exchanges the `token` for a cookie; a generated token works once, one from a file always."""

    def __init__(self, key: bytes, token: str, port: int, names: frozenset[str], reusable: bool) -> None:
        self.cookie = f"septet-{port}"
        self.cookie_value = hmac.digest(key, b"septet web", "sha256").hex()
        self._key = key
        self._token = token
        self._used_links: set[str] = set()
        self._names = names
        self._reusable = reusable

    def allows_host(self, host: str) -> bool:
        """Allow our own names and IP addresses only: another name could be DNS rebinding."""
        name = host_name(host)
        return name is not None and (name in self._names or is_address(name))

    def redeem_token(self, token: str) -> bool:
        if token.startswith(LINK_PREFIX):
            return self._redeem_link(token)
        valid = bool(self._token) and hmac.compare_digest(token.encode(), self._token.encode())
        if valid and not self._reusable:
            self._token = ""
        return valid

    def _redeem_link(self, token: str) -> bool:
        """A link that `septet web --link` signed: once, and for a few minutes."""
        if token in self._used_links or not is_valid_link(self._key, token, time()):
            return False
        self._used_links.add(token)
        return True

    def is_authenticated(self, headers: Headers, cookies: dict[str, str]) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if self._reusable and scheme.lower() == "bearer":
            return hmac.compare_digest(token.encode(), self._token.encode())
        return hmac.compare_digest(cookies.get(self.cookie, "").encode(), self.cookie_value.encode())

    def cookie_header(self) -> str:
        """The Set-Cookie header: not readable by scripts, not sent from other sites."""
        return (
            f"{self.cookie}={self.cookie_value}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict"
        )


LINK_PREFIX = "link."
LINK_SECONDS = 600


def sign_link(key: bytes, now: float) -> str:
    """A token that lets one more browser in; whoever can read the key may sign one."""
    body = f"{LINK_PREFIX}{int(now) + LINK_SECONDS}.{secrets.token_urlsafe(12)}"
    return f"{body}.{link_signature(key, body)}"


def link_signature(key: bytes, body: str) -> str:
    return hmac.digest(key, b"septet link " + body.encode(), "sha256").hex()


def is_valid_link(key: bytes, token: str, now: float) -> bool:
    body, _, signature = token.rpartition(".")
    until = body.split(".")[1] if body.count(".") == 2 else ""
    if not until.isascii() or not until.isdigit() or len(until) > 12:
        return False
    return hmac.compare_digest(signature.encode(), link_signature(key, body).encode()) and now < int(until)


def same_origin(headers: Headers, required: bool) -> bool:
    """Whether the request comes from our own page. For a change the Origin header is `required`."""
    origin = headers.get("origin")
    if origin is None:
        return not required or headers.get("authorization", "") != ""
    return origin in (f"http://{headers.get('host', '')}", f"https://{headers.get('host', '')}")


def host_name(host: str) -> str | None:
    """Return the name without port and without the brackets of an IPv6 address; None if it is not valid."""
    match = HOST_HEADER.fullmatch(host)
    return (match["address"] or match["name"]).lower() if match else None


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def load_cookie_key(path: Path) -> bytes:
    """Load or create the secret behind the cookies; it is stored, so that a restart logs nobody out."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            draft = path.with_name(f".{secrets.token_hex(8)}.new")
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(32))
            draft.replace(path)
        return path.read_bytes()
    except OSError as error:
        raise StoreFailed(f"{path} cannot be used ({error.strerror})", "check its permissions") from error


def read_token(path: Path) -> str:
    """Read the shared token of a server that other machines can reach."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadUsage(f"the token file {path} cannot be read", "name a text file with one line") from error
    if len(token) < MIN_TOKEN_LENGTH:
        raise BadUsage(
            f"the token in {path} has {pluralize(len(token), 'character')}",
            f"use at least {MIN_TOKEN_LENGTH}, e.g. python -c 'import secrets; print(secrets.token_urlsafe())'",
        )
    return token


CONTENT_SECURITY_POLICY = "; ".join(
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
SECURITY_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), usb=()",
}
NOTICE_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.6 system-ui, 'Segoe UI', Roboto, sans-serif; margin: 0; min-height: 100vh; display: grid;
  place-items: center; background: light-dark(#f4f5f8, #0f1219); color: light-dark(#1b2130, #e6e9f0); }
main { max-width: 34rem; margin: 1rem; padding: 1.5rem 2rem; border-radius: 14px;
  border: 1px solid light-dark(#d9dde6, #303747); background: light-dark(#fff, #171b25); }
h1 { font-size: 1.4rem; margin: 0 0 .5rem; }
code { background: light-dark(#eef1f7, #212736); border-radius: 4px; padding: 0 .3em; }
a { color: light-dark(#2453c7, #8fb1ff); }
"""
NOTICE_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(NOTICE_STYLE.encode()).digest()).decode()
    + "'"
)
"""The one style sheet of these pages, and nothing else: who is not let in gets no file of ours."""


def notice_page(title: str, text: str, status: int) -> Response:
    """A page for those who are not let in, or who look for what is not there."""
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title} · septet</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{NOTICE_STYLE}</style></head>'
        f"<body><main><h1>{title}</h1><p>{text}</p></main></body></html>\n"
    )
    return HTMLResponse(page, status, headers={"content-security-policy": NOTICE_POLICY})


def private_page() -> Response:
    return notice_page(
        "This page is private",
        "Open the address that <code>septet web</code> printed: it opens one browser, once. For another browser, "
        "<code>septet web --link</code> prints a fresh address while the server runs. If you came here by a link "
        "and had the page open already, reload.",
        401,
    )


def missing_page() -> Response:
    return notice_page(
        "There is no such page",
        'The chats are listed on <a href="/">the first page</a>; a chat\'s address is '
        "<code>/chat/NAME</code>.",
        404,
    )


SAFE_METHODS = ("GET", "HEAD")
REFUSED_SOCKET = 4403
API_PATHS = ("/v1/", MCP_PATH, A2A_PATH)
"""Paths for programs, which read errors as JSON."""
MISSING_KEY = "send the token of septet web --token-file as the API key"


def refuse(scope: Scope, status: int, text: str) -> Response:
    """A refusal in the form that the client of this path reads."""
    if scope["path"].startswith(API_PATHS):
        response = json_response(program_error(scope["path"], status, text), status)
        if status == 401:
            response.headers["www-authenticate"] = "Bearer"
        return response
    return PlainTextResponse(f"{text}\n", status)


def program_error(path: str, status: int, text: str) -> object:
    """The error in the form of the protocol that is spoken at this path."""
    if path.startswith(A2A_PATH):
        return a2a_error(path, status, text)
    return rpc_error(status, text) if path.startswith(MCP_PATH) else refusal_content(status, text)


class AuthMiddleware:
    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refusal = self.refusal(scope)
        if refusal is None:
            await self.app(scope, receive, with_security_headers(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": REFUSED_SOCKET})
        else:
            await refusal(scope, receive, with_security_headers(send))

    def refusal(self, scope: Scope) -> Response | None:
        """Return the response to a request that is not allowed; None if it is allowed."""
        headers = Headers(scope=scope)
        if not self.access.allows_host(headers.get("host", "")):
            return refuse(scope, 421, "this host name is not served here")
        if scope["path"] == CARD_PATH:  # says to everybody what token is wanted, and nothing of the person
            return None
        is_api = scope["path"].startswith(API_PATHS)
        changes = scope["type"] == "websocket" or scope["method"] not in SAFE_METHODS
        if is_api and not headers.get("authorization") and "origin" not in headers:
            return refuse(scope, 401, MISSING_KEY)
        if not same_origin(headers, required=changes):
            return refuse(scope, 403, "this origin is not allowed")
        if scope["type"] == "http" and (redirect := self.exchange_token(scope)) is not None:
            return redirect
        if self.access.is_authenticated(headers, cookie_parser(headers.get("cookie", ""))):
            return None
        if is_api:
            return refuse(scope, 401, MISSING_KEY)
        return private_page()

    def exchange_token(self, scope: Scope) -> Response | None:
        """Exchange a token in the URL for a cookie, and redirect to the URL without it."""
        parameters = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = next((value for name, value in parameters if name == "token"), None)
        if token is None or scope["method"] != "GET" or not self.access.redeem_token(token):
            return None
        rest = urlencode([(name, value) for name, value in parameters if name != "token"])
        path = "/" + scope["path"].lstrip("/")
        response = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        response.headers["set-cookie"] = self.access.cookie_header()
        response.headers["cache-control"] = "no-store"
        return response


def with_security_headers(send: Send) -> Send:
    """Add the security headers to every response; artefacts have a stricter policy of their own."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers
