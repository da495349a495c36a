"""The folders for Septet's own files: never in the person's project, and created only when something is written."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from septet.common.values import Value
from septet.errors import BadConfig, BadUsage


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
    import platformdirs

    folders = platformdirs.PlatformDirs("septet", appauthor=False)
    return Home(data=folders.user_data_path, config=folders.user_config_path, cache=folders.user_cache_path)


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
