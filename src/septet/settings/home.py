"""The folders for Septet's own files: never in the person's project, and created only when something is written."""

import os
from collections.abc import Mapping
from pathlib import Path

from septet.common.values import Value


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
    def workspaces(self) -> Path:
        return self.data / "work"


def find_home(environment: Mapping[str, str] = os.environ) -> Home:
    if moved := environment.get("SEPTET_HOME"):
        root = Path(moved).expanduser().absolute()
        return Home(data=root, config=root / "config", cache=root / "cache")
    import platformdirs

    folders = platformdirs.PlatformDirs("septet", appauthor=False)
    return Home(data=folders.user_data_path, config=folders.user_config_path, cache=folders.user_cache_path)
