"""Where members meet: the address of a server and what opens it, from what a person said or left unsaid."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

from septet.common.text import encode_token
from septet.common.values import Value
from septet.errors import BadConfig
from septet.settings.group_chats import GroupChatFile, adopted, read_group_chat
from septet.settings.home import find_home

USUAL = "nats://127.0.0.1:4222"


class Meeting(Value):
    """What the command line says; everything may be left out on the machine of the host."""

    url: str = ""
    token_file: Path | None = None
    tls_ca: str = ""
    config: Path | None = None
    store: Path | None = None


def options_of(meeting: Meeting) -> str:
    """The words of a command line that open the same server again, after its address."""
    given = (("--token-file", meeting.token_file), ("--tls-ca", meeting.tls_ca))
    return "".join(f" {option} {quote(str(value))}" for option, value in given if value)


def host_folder(store: Path | None) -> Path:
    """Where a host keeps its log, its tokens and its address."""
    return (store or find_home().data / "host").expanduser().absolute()


def address_of(meeting: Meeting) -> str:
    """The one that was said, else that of the group chat's file, else that of the host of this machine."""
    if meeting.url:
        return meeting.url
    if meeting.config:
        found = read_group_chat(meeting.config)
        return f"nats://{listening_name(found.hostname)}:{found.port}"
    kept = host_folder(meeting.store) / "address"
    return kept.read_text(encoding="utf-8").strip() if kept.exists() else USUAL


def certificate_of(meeting: Meeting) -> str:
    """That of this machine's own host, which needs nobody to vouch for it."""
    kept = host_folder(meeting.store) / "certificate"
    own = not (meeting.url or meeting.config or meeting.tls_ca)
    return kept.read_text(encoding="utf-8").strip() if own and kept.exists() else ""


def listening_name(hostname: str) -> str:
    """One address for what has two: a server that listens on 127.0.0.1 is not at ::1."""
    return "127.0.0.1" if hostname == "localhost" else hostname


def token_of(meeting: Meeting, environment: Mapping[str, str] = os.environ) -> str:
    """The token that was said; a file that was named must be there."""
    if meeting.token_file is None:
        return environment.get("SEPTET_TOKEN", "")
    try:
        return meeting.token_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        cause = f"{meeting.token_file} cannot be read ({error.strerror})"
        raise BadConfig(cause, "name the token file that `septet host` printed") from error


def usual_token_file(meeting: Meeting, roles: Sequence[str]) -> Path:
    """On the host's own machine: that of the one role, or the one that opens everything."""
    folder = host_folder(meeting.store)
    return folder / "tokens" / encode_token(roles[0]) if len(roles) == 1 else folder / "token"


def adopt(config: Path) -> GroupChatFile:
    """Read a group chat's file; what it says of the provider holds where the environment says nothing."""
    found = read_group_chat(config)
    os.environ.update(adopted(found, os.environ))
    return found
