"""Which server is meant, and what opens it: from the options of a command line to the endpoint."""

import os
import re
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

from septet.common.hosts import is_loopback
from septet.common.text import encode_token
from septet.common.values import Value
from septet.errors import BadConfig, BadUsage
from septet.settings.group_chats import GroupChatFile, client_environment, read_group_chat
from septet.settings.home import find_home

SECRET = re.compile(r"//([^@/]*)@")
ADDRESS = re.compile(
    r"(nats|tls|ws|wss)://(?P<secret>[^@/\s]+@)?(?P<host>\[[0-9a-fA-F:]+\]|[^@/\s:]+)(:\d+)?/?"
)
DEFAULT_ADDRESS = "nats://127.0.0.1:4222"


class Endpoint(Value):
    """Where a server is and what opens it.

    `token` is `NAME:SECRET`, or a bare token of somebody else's server; it may also be part of the address, or in
    `token_file`, which is read whenever it is needed: the host may not have written it yet.
    """

    address: str
    token: str = ""
    token_file: str = ""
    ca_file: str = ""
    """A file with the certificate that signed the server's (TLS)."""
    certificate: str = ""
    """A file with the server's own certificate, to be trusted as it is (TLS)."""
    name: str = "septet"

    @property
    def uses_tls(self) -> bool:
        return bool(self.ca_file or self.certificate) or self.address.startswith(("tls:", "wss:"))


class ConnectOptions(Value):
    """What the command line says; everything may be left out on the machine of the host."""

    url: str = ""
    token_file: Path | None = None
    tls_ca: str = ""
    config: Path | None = None
    store: Path | None = None


def endpoint_of(options: ConnectOptions, roles: Sequence[str] = ()) -> Endpoint:
    """On one machine the token is found where the host keeps it; the host may be started later."""
    address, token = address_of(options), token_of(options)
    found = ADDRESS.fullmatch(address)
    here = not token and found is not None and not found["secret"] and is_loopback(found["host"])
    return Endpoint(
        address=address,
        token=token,
        token_file=str(default_token_file(options, roles)) if here else "",
        ca_file=options.tls_ca,
        certificate=certificate_of(options),
        name=f"septet on {socket.gethostname()}",
    )


def command_line_options(options: ConnectOptions) -> str:
    """The words of a command line that open the same server again, after its address."""
    given = (("--token-file", options.token_file), ("--tls-ca", options.tls_ca))
    return "".join(f" {option} {quote(str(value))}" for option, value in given if value)


def host_folder(store: Path | None) -> Path:
    """Where a host keeps its log, its tokens and its address."""
    return (store or find_home().data / "host").expanduser().absolute()


def address_of(options: ConnectOptions) -> str:
    """The one that was said, else that of the group chat's file, else that of the host of this machine."""
    if options.url:
        return options.url
    if options.config:
        found = read_group_chat(options.config)
        return f"nats://{listening_name(found.hostname)}:{found.port}"
    file = host_folder(options.store) / "address"
    return file.read_text(encoding="utf-8").strip() if file.exists() else DEFAULT_ADDRESS


def certificate_of(options: ConnectOptions) -> str:
    """That of this machine's own host, which needs nobody to vouch for it."""
    file = host_folder(options.store) / "certificate"
    own = not (options.url or options.config or options.tls_ca)
    return file.read_text(encoding="utf-8").strip() if own and file.exists() else ""


def listening_name(hostname: str) -> str:
    """One address for what has two: a server that listens on 127.0.0.1 is not at ::1."""
    return "127.0.0.1" if hostname == "localhost" else hostname


def token_of(options: ConnectOptions, environment: Mapping[str, str] = os.environ) -> str:
    """The token that was said; a file that was named must be there."""
    if options.token_file is None:
        return environment.get("SEPTET_TOKEN", "")
    try:
        return options.token_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        cause = f"{options.token_file} cannot be read ({error.strerror})"
        raise BadConfig(cause, "name the token file that `septet host` printed") from error


def default_token_file(options: ConnectOptions, roles: Sequence[str]) -> Path:
    """On the host's own machine: that of the one role, or the one that opens everything."""
    folder = host_folder(options.store)
    return folder / "tokens" / encode_token(roles[0]) if len(roles) == 1 else folder / "token"


def load_group_chat(config: Path) -> GroupChatFile:
    """Read a group chat's file; what it says of the provider holds where the environment says nothing."""
    found = read_group_chat(config)
    os.environ.update(client_environment(found, os.environ))
    return found


def secret_of(endpoint: Endpoint) -> str:
    if endpoint.token:
        return endpoint.token
    if found := SECRET.search(endpoint.address):
        return found[1]
    if not endpoint.token_file:
        return ""
    try:
        return Path(endpoint.token_file).read_text(encoding="utf-8").strip()
    except OSError:  # the host may be started later, or the server may need no token
        return ""


def without_secret(address: str) -> str:
    """The address without the secret that may be in it."""
    return SECRET.sub("//", address)


def check_address(endpoint: Endpoint) -> None:
    found = ADDRESS.fullmatch(endpoint.address)
    if not found:
        raise BadConfig(
            f"'{without_secret(endpoint.address)}' is no address of a server", "write nats://HOST:PORT"
        )
    if not endpoint.uses_tls and not is_loopback(found["host"]):
        raise BadUsage(
            f"{found['host']} is another machine, and the token would be readable on the way",
            "write tls://HOST:PORT, and name the certificate with --tls-ca where it is your own",
        )
