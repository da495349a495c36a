"""The folders for Septet's own files: never in the person's project, and created only when something is written."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from septet.common.values import Value
from septet.errors import BadConfig, BadUsage

TELEMETRY_VARIABLE = "SEPTET_TELEMETRY"


class Home(Value):
    """Under `SEPTET_HOME`, if it is set; else in the platform's usual folders."""

    data: Path
    config: Path
    cache: Path

    @property
    def database(self) -> Path:
        return self.data / "septet.db"

    @property
    def blobs(self) -> Path:
        return self.data / "blobs"

    @property
    def examples(self) -> Path:
        return self.data / "examples.db"

    @property
    def index(self) -> Path:
        """What is computed from the log; it can be deleted at any time."""
        return self.cache / "index.db"

    @property
    def facts(self) -> Path:
        return self.data / "facts"

    @property
    def remote_chats(self) -> Path:
        """Notes of the chats whose log is on a server."""
        return self.data / "conducted"

    @property
    def environments(self) -> Path:
        return self.data / "environments"

    @property
    def locks(self) -> Path:
        return self.data / "locks"

    @property
    def artefacts(self) -> Path:
        return self.data / "keepsakes"

    @property
    def scratches(self) -> Path:
        """Copies of the person's folders that teams work in."""
        return self.data / "scratch"

    @property
    def trusted(self) -> Path:
        """The list of the folders into which finished work is written without a question."""
        return self.config / "trusted.json"

    @property
    def workspaces(self) -> Path:
        return self.data / "work"


def find_home(environment: Mapping[str, str] = os.environ) -> Home:
    if moved := environment.get("SEPTET_HOME"):
        root = Path(moved).expanduser().absolute()
        return Home(data=root, config=root / "config", cache=root / "cache")
    if sys.platform == "darwin":
        library = Path.home() / "Library"
        data = library / "Application Support" / "septet"
        return Home(data=data, config=data, cache=library / "Caches" / "septet")
    return Home(
        data=user_folder(environment, "XDG_DATA_HOME", ".local/share"),
        config=user_folder(environment, "XDG_CONFIG_HOME", ".config"),
        cache=user_folder(environment, "XDG_CACHE_HOME", ".cache"),
    )


def user_folder(environment: Mapping[str, str], variable: str, usual: str) -> Path:
    """Our folder in one of the XDG base directories. A relative path in the variable does not count."""
    given = Path(environment.get(variable, ""))
    return (given if given.is_absolute() else Path.home() / usual) / "septet"


def trusted_folders(home: Home) -> list[str]:
    """Return the folders that `septet trust` has added."""
    try:
        return msgspec.json.decode(home.trusted.read_bytes(), type=list[str])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
        raise BadConfig(
            f"the trusted folders in {home.trusted} cannot be read", "remove the file and trust them again"
        ) from error


def set_trusted(home: Home, folder: Path, trusted: bool) -> None:
    """Add a folder to the trusted ones, or remove it. Raises BadUsage if there is no such folder."""
    path = str(folder.resolve())
    before = trusted_folders(home)
    if trusted and not folder.is_dir():
        raise BadUsage(f"{folder} is not a folder", "create it first, or check the path")
    if not trusted and path not in before:
        raise BadUsage(f"{folder} is not a trusted folder", "septet trust --list shows them")
    others = [other for other in before if other != path]
    write_private(home.trusted, msgspec.json.format(msgspec.json.encode([*others, *[path][:trusted]])))


def write_private(path: Path, content: bytes) -> None:
    """Replace a settings file atomically; only its owner can read it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_bytes(content)
        draft.replace(path)
    except OSError as error:
        raise BadConfig(f"{path} cannot be written: {error.strerror}", "check the folder") from error
