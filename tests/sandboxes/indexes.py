"""A package index on this machine with a few small distributions."""

import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from loopback import Quiet, served


def add(folder: Path, name: str, module: str) -> None:
    """A distribution that brings one module."""
    page = folder / "simple" / name
    page.mkdir(parents=True)
    file = f"{name}-9.9-py3-none-any.whl"
    about = f"{name}-9.9.dist-info"
    with zipfile.ZipFile(page / file, "w") as wheel:
        wheel.writestr(f"{module}/__init__.py", "smile = ':)'\n")
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    (page / "index.html").write_text(f'<a href="{file}">{file}</a>')


@contextmanager
def index(folder: Path, *names: str, other: str = "") -> Generator[str]:
    """Serves distributions that bring a module of their own name; `other` brings one of another name."""
    for name in names:
        add(folder, name, name)
    if other:
        add(folder, other, "something_else")
    with served(partial(Quiet, directory=str(folder))) as place:
        yield place
