"""Finds the server's address and credentials from the options of a command line."""

import os
import re
import shlex
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


class NatsEndpoint(Value):
    """The address and credentials of a server.

    `token` is `NAME:SECRET`, or a bare token of another operator's server; it may also be part of the address, or in
    `token_file`, which is read at each use, because the host may not have written it yet.
    """

    address: str
    token: str = ""
    token_file: str = ""
    ca_file: str = ""
    """A file with the certificate that signed the server's (TLS)."""
    certificate: str = ""
    """A file with the server's own certificate, trusted directly (TLS)."""
    name: str = "septet"

    @property
    def uses_tls(self) -> bool:
        return bool(self.ca_file or self.certificate) or self.address.startswith(("tls:", "wss:"))


class ConnectOptions(Value):
    """The options of the command line; all are optional on the machine of the host."""

    url: str = ""
    token_file: Path | None = None
    tls_ca: str = ""
    config: Path | None = None
    store: Path | None = None


def endpoint_of(options: ConnectOptions, roles: Sequence[str] = ()) -> NatsEndpoint:
    """The endpoint by the options. On the host's own machine the token is read from its folder, at the time of use."""
    address, token = address_of(options), token_of(options)
    match = ADDRESS.fullmatch(address)
    is_local = not token and match is not None and not match["secret"] and is_loopback(match["host"])
    return NatsEndpoint(
        address=address,
        token=token,
        token_file=str(default_token_file(options, roles)) if is_local else "",
        ca_file=options.tls_ca,
        certificate=certificate_of(options),
        name=f"septet on {socket.gethostname()}",
    )


def address_with_scheme(address: str) -> str:
    """An address that may be written as HOST:PORT."""
    if "://" in address:
        return address
    host, colon, port = address.rpartition(":")
    return f"nats://{listening_name(host)}{colon}{port}" if colon else f"nats://{listening_name(address)}"


def command_line_options(options: ConnectOptions) -> str:
    """The options to connect to the same server again, to follow its address."""
    given = (("--token-file", options.token_file), ("--tls-ca", options.tls_ca))
    return "".join(f" {option} {quote(str(value))}" for option, value in given if value)


def options_in_command(command: str) -> ConnectOptions:
    """The options in a command that continues a chat: the address, and what `command_line_options` added to it."""
    _, _, url, *words = shlex.split(command)
    given = dict(zip(words[::2], words[1::2], strict=True))
    token_file = Path(given["--token-file"]) if "--token-file" in given else None
    return ConnectOptions(url=url, token_file=token_file, tls_ca=given.get("--tls-ca", ""))


def host_folder(store: Path | None) -> Path:
    """The folder of a host's log, tokens and address."""
    return (store or find_home().data / "host").expanduser().absolute()


def address_of(options: ConnectOptions) -> str:
    """The address in the options, else in the group chat's file, else that of this machine's host."""
    if options.url:
        return options.url
    if options.config:
        group_chat = read_group_chat(options.config)
        return f"nats://{listening_name(group_chat.hostname)}:{group_chat.port}"
    file = host_folder(options.store) / "address"
    return file.read_text(encoding="utf-8").strip() if file.exists() else DEFAULT_ADDRESS


def certificate_of(options: ConnectOptions) -> str:
    """The certificate of this machine's own host, which needs no CA."""
    file = host_folder(options.store) / "certificate"
    is_own_host = not (options.url or options.config or options.tls_ca)
    return file.read_text(encoding="utf-8").strip() if is_own_host and file.exists() else ""


def listening_name(hostname: str) -> str:
    """127.0.0.1 for localhost, which may resolve to ::1, where the server does not listen."""
    return "127.0.0.1" if hostname == "localhost" else hostname


def token_of(options: ConnectOptions, environment: Mapping[str, str] = os.environ) -> str:
    """The token from the token file or the environment. Raises BadConfig if the file cannot be read."""
    if options.token_file is None:
        return environment.get("SEPTET_TOKEN", "")
    try:
        return options.token_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        cause = f"{options.token_file} cannot be read ({error.strerror})"
        raise BadConfig(cause, "name the token file that `septet host` printed") from error


def default_token_file(options: ConnectOptions, roles: Sequence[str]) -> Path:
    """The token file on the host's own machine: of a single role, or else the conductor's."""
    folder = host_folder(options.store)
    return folder / "tokens" / encode_token(roles[0]) if len(roles) == 1 else folder / "token"


def load_group_chat(config: Path) -> GroupChatFile:
    """Read a group chat's file, and add its provider settings to the environment, which wins."""
    group_chat = read_group_chat(config)
    os.environ.update(client_environment(group_chat, os.environ))
    return group_chat


def secret_of(endpoint: NatsEndpoint) -> str:
    if endpoint.token:
        return endpoint.token
    if match := SECRET.search(endpoint.address):
        return match[1]
    if not endpoint.token_file:
        return ""
    try:
        return Path(endpoint.token_file).read_text(encoding="utf-8").strip()
    except OSError:  # the host may be started later, or the server may need no token
        return ""


def without_secret(address: str) -> str:
    """The address without the secret that may be in it."""
    return SECRET.sub("//", address)


def check_address(endpoint: NatsEndpoint) -> None:
    match = ADDRESS.fullmatch(endpoint.address)
    if not match:
        raise BadConfig(
            f"'{without_secret(endpoint.address)}' is not the address of a server", "write nats://HOST:PORT"
        )
    if not endpoint.uses_tls and not is_loopback(match["host"]):
        raise BadUsage(
            f"{match['host']} is another machine, and the token would be sent unencrypted",
            "write tls://HOST:PORT, and name the certificate with --tls-ca if it is your own",
        )
