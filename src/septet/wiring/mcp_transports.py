"""How MCP servers are reached: a command in the sandbox, or streamable HTTP with the permission of its service."""

import logging
import os
import shutil
import sys
import webbrowser
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import anyio
import msgspec
from anyio.abc import SocketStream

from septet.common.values import Value
from septet.domain.runs import Job, Limits
from septet.errors import BadConfig, NeedsPerson, NoSandbox
from septet.sandboxes.ladder import choose_sandbox
from septet.sandboxes.services import open_service
from septet.settings.home import write_private
from septet.workspace.files import refuse_system_folder

if TYPE_CHECKING:
    import httpx2
    from mcp import Client, StdioServerParameters
    from mcp.client._transport import Transport
    from mcp.client.auth import TokenStorage
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

    from septet.settings.mcp_file import McpServer

LIMITS = Limits(seconds=1e9, cpu_seconds=86_400)
"""A server lives as long as the session; memory, processes and disk are those of a run."""
CALLBACK_PORT = 34567
CALLBACK = f"http://127.0.0.1:{CALLBACK_PORT}/callback"
LOGIN_SECONDS = 300.0
MAX_CALLBACK = 16_384
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nYou may close this page.\n"
Visit = Callable[[str], Awaitable["AuthorizationCodeResult"]]
"""Takes the person to an address where a service asks for permission, and returns what it answers."""


class Transports:
    """`visit` is how the person gives permission; without it a server that wants it is refused with the remedy."""

    def __init__(self, folder: Path, visit: Visit | None = None) -> None:
        self._folder = folder
        self._visit = visit

    @asynccontextmanager
    async def open(self, name: str, entry: "McpServer") -> "AsyncGenerator[Client]":
        """A client that is connected, until the context ends."""
        try:
            from mcp import Client
        except ImportError as error:
            cause = f"the MCP server '{name}' needs the mcp package"
            raise BadConfig(cause, "install it: pip install 'septet[mcp]'") from error
        if bool(entry.url) == bool(entry.command):
            raise BadConfig(f"the MCP server '{name}' must have a command or a url", "septet config edit mcp")
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        async with AsyncExitStack() as opened:
            transport = await (self._http if entry.url else self._stdio)(name, entry, opened)
            client = Client(transport, read_timeout_seconds=entry.seconds)
            yield await opened.enter_async_context(client)

    async def _stdio(self, name: str, entry: "McpServer", opened: AsyncExitStack) -> "Transport":
        from mcp import StdioServerParameters, stdio_client

        silence = opened.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: ASYNC230, PTH123, SIM115  # it cannot block, and is closed with the rest
        if entry.unsafe:
            environment = {"PATH": os.environ.get("PATH", ""), **entry.env}
            started = StdioServerParameters(command=entry.command, args=list(entry.args), env=environment)
        else:
            started = await self._sandboxed(name, entry, opened)
        return stdio_client(started, errlog=silence)

    async def _sandboxed(
        self, name: str, entry: "McpServer", opened: AsyncExitStack
    ) -> "StdioServerParameters":
        from mcp import StdioServerParameters

        program = found_program(entry.command)
        own = self._folder / name
        own.mkdir(parents=True, exist_ok=True, mode=0o700)
        job = Job(
            command=(str(program), *entry.args),
            workspace=str(own),
            limits=LIMITS,
            environment={**entry.env, "HOME": str(own)},
            readable=tuple(map(str, named_paths(program, entry))),
            network=entry.network,
        )
        try:
            service = open_service(
                await choose_sandbox(), job, [checked_folder(path) for path in entry.writes]
            )
            command, variables = await opened.enter_async_context(service)
        except NoSandbox as error:
            remedy = f"{error.remedy}; or let it run with your rights: septet mcp add {name} --unsafe …"
            raise NoSandbox(f"the MCP server '{name}' cannot be contained ({error.cause})", remedy) from error
        return StdioServerParameters(command=command[0], args=command[1:], env=variables)

    async def _http(self, name: str, entry: "McpServer", opened: AsyncExitStack) -> "Transport":
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        made = create_mcp_http_client(headers=dict(entry.headers), auth=self._permission(name, entry))
        client = await opened.enter_async_context(made)
        return streamable_http_client(entry.url, http_client=client)

    def _permission(self, name: str, entry: "McpServer") -> "httpx2.Auth | None":
        """Who has a fixed header needs no permission; others ask when the server wants it."""
        if any(header.lower() == "authorization" for header in entry.headers):
            return None
        tokens = TokenFile(self._folder.parent / "mcp-tokens.json", f"{name} {entry.url}", entry)
        if entry.issuer:
            from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider

            return ClientCredentialsOAuthProvider(
                entry.url, tokens, entry.client_id, entry.client_secret, issuer=entry.issuer
            )
        return self._persons_permission(name, entry, tokens)

    def _persons_permission(self, name: str, entry: "McpServer", tokens: "TokenStorage") -> "httpx2.Auth":
        from mcp.client.auth import OAuthClientProvider
        from mcp.shared.auth import OAuthClientMetadata
        from pydantic import AnyUrl

        address: list[str] = []

        async def go_to(url: str) -> None:
            address.append(url)

        async def answer() -> "AuthorizationCodeResult":
            if self._visit is None:
                raise NeedsPerson(
                    f"the MCP server '{name}' wants your permission", f"septet mcp login {name}"
                )
            return await self._visit(address[-1])

        metadata = OAuthClientMetadata(client_name="Septet", redirect_uris=[AnyUrl(CALLBACK)])
        return OAuthClientProvider(entry.url, metadata, tokens, go_to, answer)


def named_paths(program: Path, entry: "McpServer") -> list[Path]:
    """What belongs to the program, what the command line names, and the folders to read; none inside another."""
    words = (Path(word).expanduser() for word in entry.args)
    named = [path.resolve() for path in words if path.is_absolute() and path.exists() and is_small(path)]
    paths = [program_folder(program), *named, *map(checked_folder, entry.folders)]
    return [path for path in dict.fromkeys(paths) if not set(path.parents) & set(paths)]


def found_program(command: str) -> Path:
    """The program that a command starts: a link's target, unless the link belongs to a virtual environment."""
    found = shutil.which(command)
    if found is None:
        raise BadConfig(f"there is no program '{command[:80]}'", "install it, or name it by its path")
    path = Path(found).absolute()
    return path if in_environment(path) else path.resolve()


def in_environment(program: Path) -> bool:
    return (program.parent.parent / "pyvenv.cfg").exists()


def program_folder(program: Path) -> Path:
    """What a program needs beside itself: its virtual environment, or the packages that it was installed with."""
    if in_environment(program):
        return program.parent.parent.resolve()
    return next((folder for folder in program.parents if folder.name == "node_modules"), program)


def is_small(path: Path) -> bool:
    """Whether a path can be meant: not the whole disk, nor a folder that holds the person's home."""
    return not Path.home().resolve().is_relative_to(path.resolve())


def checked_folder(text: str) -> Path:
    path = Path(text).expanduser()
    if not path.is_absolute() or not path.exists() or not is_small(path):
        raise BadConfig(f"'{text[:200]}' is no folder to let a server into", "name one by its absolute path")
    refuse_system_folder(path.resolve())
    return path.resolve()


class Kept(Value):
    """What a service gave us."""

    tokens: dict[str, object] | None = None
    client: dict[str, object] | None = None


class TokenFile:
    """Tokens of one server, in a file that only the person may read; tells nobody else's."""

    def __init__(self, path: Path, key: str, entry: "McpServer") -> None:
        self._path = path
        self._key = key
        self._entry = entry

    async def get_tokens(self) -> "OAuthToken | None":
        from mcp.shared.auth import OAuthToken

        found = self._read().get(self._key, Kept()).tokens
        return OAuthToken.model_validate(found) if found else None

    async def set_tokens(self, tokens: "OAuthToken") -> None:
        self._write(Kept(tokens=tokens.model_dump(mode="json"), client=self._kept.client))

    async def get_client_info(self) -> "OAuthClientInformationFull | None":
        """What the service knows us by: what the person has from it, else what it gave us."""
        from mcp.shared.auth import OAuthClientInformationFull

        own = {"client_id": self._entry.client_id, "redirect_uris": [CALLBACK]}
        if self._entry.client_secret:
            own |= {
                "client_secret": self._entry.client_secret,
                "token_endpoint_auth_method": "client_secret_basic",
            }
        known = own if self._entry.client_id else self._kept.client
        return OAuthClientInformationFull.model_validate(known) if known else None

    async def set_client_info(self, client_info: "OAuthClientInformationFull") -> None:
        self._write(Kept(tokens=self._kept.tokens, client=client_info.model_dump(mode="json")))

    @property
    def _kept(self) -> Kept:
        return self._read().get(self._key, Kept())

    def _read(self) -> dict[str, Kept]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Kept])
        except (OSError, msgspec.MsgspecError):
            return {}

    def _write(self, kept: Kept) -> None:
        write_private(self._path, msgspec.json.encode({**self._read(), self._key: kept}))


async def visit_by_browser(url: str) -> "AuthorizationCodeResult":
    """Show the address, open a browser, and wait for it to come back to this machine."""
    sys.stderr.write(f"Give permission here: {url}\n")
    webbrowser.open(url)
    return await received_answer(CALLBACK_PORT)


async def received_answer(port: int) -> "AuthorizationCodeResult":
    """What the browser brings back. Raises NeedsPerson if it brings nothing in time."""
    from mcp.shared.auth import AuthorizationCodeResult

    send, receive = anyio.create_memory_object_stream[str](1)

    async def serve(stream: SocketStream) -> None:
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head and len(head) < MAX_CALLBACK:
                head += await stream.receive()
            await stream.send(ANSWER)
            target = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
            if len(target) == 3 and urlsplit(target[1]).path == "/callback":
                await send.send(target[1])

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        with anyio.move_on_after(LOGIN_SECONDS):
            found = parse_qs(urlsplit(await receive.receive()).query)
            tasks.cancel_scope.cancel()
            if "code" in found:
                state, issuer = (found.get(name, [None])[0] for name in ("state", "iss"))
                return AuthorizationCodeResult(code=found["code"][0], state=state, iss=issuer)
        tasks.cancel_scope.cancel()
    raise NeedsPerson("the service gave no permission", "try again")
