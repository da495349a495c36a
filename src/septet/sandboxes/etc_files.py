"""The /etc of a sandbox: built once per process from harmless files of the machine and files of our own."""

import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path

from septet.common.temporary import process_folder

_ETC = Path("/etc")
_COPIED_FILES = (
    *(
        "alternatives",
        "gitconfig",
        "debian_version",
        "fonts",
        "gai.conf",
        "ld.so.cache",
        "ld.so.conf",
        "ld.so.conf.d",
    ),
    *("locale.alias", "localtime", "magic", "mailcap", "mime.types", "os-release", "protocols", "services"),
    *("ssl/cert.pem", "ssl/certs/ca-certificates.crt", "ssl/openssl.cnf", "terminfo", "timezone"),
)
_OWN_FILES = {
    "passwd": "root:x:0:0:root:/nonexistent:/bin/sh\nseptet:x:1000:1000:septet:/tmp/home:/bin/sh\n",
    "group": "root:x:0:\nseptet:x:1000:\n",
    "hosts": "127.0.0.1 localhost septet\n::1 localhost ip6-localhost\n",
    "hostname": "septet\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    "resolv.conf": "",
}


ETC_PATHS = tuple(str(_ETC / name) for name in (*_COPIED_FILES, *_OWN_FILES))
"""The machine's files of these names, for rungs that cannot mount another /etc."""


@cache
def etc_folder() -> Path:
    """A folder to mount as /etc; removed when this process ends."""
    folder = process_folder("etc")
    for name in _COPIED_FILES:
        with suppress(OSError, shutil.Error):
            _copy_file(_ETC / name, folder / name)
    for name, text in _OWN_FILES.items():
        (folder / name).write_text(text)
    return folder


def _copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy(source, target, follow_symlinks=not _links_into_usr(source))


def _links_into_usr(path: Path) -> bool:
    """Whether a link points into /usr: it stays a link, because the program sees /usr."""
    return path.is_symlink() and path.resolve().is_relative_to("/usr")
