"""A chat as one file to keep or to give away: complete in memory before anybody writes a byte of it."""

import io
import zipfile
from collections.abc import Mapping, Sequence

from anyio import to_thread

from septet.chat.export import FORMATS as TEXTS
from septet.chat.export import export_chat
from septet.chat.export_html import html_page
from septet.chat.redaction import Redaction
from septet.domain.events import Recorded
from septet.domain.files import FileRef
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.ports import Blobs
from septet.workspace.files import relative_parts

FORMATS = (*TEXTS, "html", "zip")
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


async def document(
    log: Sequence[Recorded], form: str, blobs: Blobs, redaction: Redaction | None = None
) -> bytes:
    """The whole chat in one of FORMATS. Raises LogDamaged where a file of it is lost."""
    if redaction is not None:
        log = await to_thread.run_sync(redaction.log, log)
    if form in TEXTS:
        return to_bytes(export_chat(log, form))
    state = fold(log)
    files = await read_blobs({file.path: file.sha256 for file in newest_files(state)}, blobs, redaction)
    made = await read_blobs(
        {path: sha for path, sha in state.work.artefacts.items() if sha}, blobs, redaction
    )
    if form == "html":
        return to_bytes(await to_thread.run_sync(html_page, log, files, made))
    contents = {
        "transcript.md": to_bytes(export_chat(log, "md")),
        "log.jsonl": to_bytes(export_chat(log, "jsonl")),
        **{f"files/{path}": content for path, content in files.items()},
        **{f"made/{path}": content for path, content in made.items()},
    }
    return await to_thread.run_sync(pack_zip, contents)


def newest_files(state: State) -> Sequence[FileRef]:
    return state.work.files


def to_bytes(text: str) -> bytes:
    return text.encode(errors="backslashreplace")


async def read_blobs(
    addresses: Mapping[str, str], blobs: Blobs, redaction: Redaction | None = None
) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for path, address in sorted(addresses.items()):
        content = await blobs.get(address)
        contents[path] = redaction.content(path, content) if redaction else content
    return contents


def pack_zip(contents: Mapping[str, bytes]) -> bytes:
    """A zip: the same files always give the same bytes, and unpacking them stays in one folder."""
    named = {"/".join(relative_parts(path)).replace("\\", "_"): content for path, content in contents.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sorted(named.items()):
            archive.writestr(zipfile.ZipInfo(name, ZIP_TIME), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
