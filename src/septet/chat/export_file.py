"""Exports a chat as one file, built completely in memory so that a failed export writes nothing."""

import io
import zipfile
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape

from anyio import to_thread

from septet.chat.export import FORMATS as TEXT_FORMATS
from septet.chat.export import export_chat, speaker_and_text
from septet.chat.redaction import Redaction
from septet.chat.results import result_of, spending_text, status
from septet.common.pictures import recognise
from septet.common.text import printable
from septet.domain.events import Recorded
from septet.domain.files import FileRef
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.ports import Blobs
from septet.workspace.files import relative_parts

FORMATS = (*TEXT_FORMATS, "html", "zip")
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


async def document(
    log: Sequence[Recorded], form: str, blobs: Blobs, redaction: Redaction | None = None
) -> bytes:
    """Return the whole chat in one of FORMATS. Raises LogDamaged if one of its files is missing."""
    if redaction is not None:
        log = await to_thread.run_sync(redaction.redact_log, log)
    if form in TEXT_FORMATS:
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
        contents[path] = redaction.redact_content(path, content) if redaction else content
    return contents


def pack_zip(contents: Mapping[str, bytes]) -> bytes:
    """Return a zip: the same files always give the same bytes, and no path leads out of its folder."""
    named = {"/".join(relative_parts(path)).replace("\\", "_"): content for path, content in contents.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sorted(named.items()):
            archive.writestr(zipfile.ZipInfo(name, ZIP_TIME), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WebP": "image/webp"}
MAX_PICTURE_BYTES = 8 << 20
ROLES = ("person", "planner", "coder", "runner", "reviewer", "manager", "exemplar", "septet")
STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882 }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif }
pre, .said { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0 }
pre { background: var(--soft); padding: .6rem; border-radius: .4rem; font-size: .875rem }
article { border-left: .25rem solid var(--line); padding: .1rem 0 .1rem .8rem; margin: 1rem 0 }
header time, article time { color: GrayText; font-size: .8rem }
table { border-collapse: collapse } td, th { border: 1px solid var(--line); padding: .3rem .6rem; text-align: left }
img { max-width: 100%; background: #fff }
.person { border-color: #36c } .planner { border-color: #a3a } .coder { border-color: #088 }
.runner { border-color: #b80 } .reviewer { border-color: #383 } .manager { border-color: #a44 }
"""


def html_page(log: Sequence[Recorded], files: Mapping[str, bytes], made: Mapping[str, bytes]) -> str:
    """Return a page with the chat, the newest version's files, and the pictures that its runs made."""
    state = fold(log)
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{safe(state.chat)}</title>',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>',
        f"<header><h1>{safe(state.chat)}</h1><p class=said>{safe(state.goal)}</p>",
        f"<p>{safe(status(state))} · {safe(spending_text(state))}</p></header>",
        *evidence_section(state),
        *(picture for path, content in made.items() if (picture := figure(path, content))),
        "<main><h2>Conversation</h2>",
        *(article(recorded) for recorded in log),
        "</main>",
        *file_section(files),
        "</body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def safe(text: str) -> str:
    """Escape markup, and control characters that could reorder the text."""
    return escape(printable(text))


def evidence_section(state: State) -> Iterator[str]:
    lines = result_of(state).evidence
    if not lines:
        return
    yield "<h2>Requirements</h2><table><tr><th><th>requirement<th>check<th>evidence"
    for line in lines:
        mark = "✓" if line.met else "✗"
        cells = (f"{line.item} {line.requirement}", line.check, line.evidence)
        yield f"<tr><td>{mark}" + "".join(f"<td>{safe(cell)}" for cell in cells)
    yield "</table>"


def article(recorded: Recorded) -> str:
    who, text = speaker_and_text(recorded)
    if not text:
        return ""
    moment = datetime.fromtimestamp(recorded.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    role = who if who in ROLES else "other"
    head = f"<strong>{safe(who)}</strong> <time>{moment}</time>"
    return f'<article class="{role}" id="e{recorded.seq}">{head}{"".join(message_html(text))}</article>'


def message_html(text: str) -> Iterator[str]:
    """Yield fenced code as `pre` and the rest as plain text."""
    parts: list[list[str]] = [[]]
    for line in text.split("\n"):
        if line.startswith("```"):
            parts.append([])
        else:
            parts[-1].append(line)
    for number, part in enumerate(map("\n".join, parts)):
        if part.strip():
            yield f"<pre>{safe(part)}</pre>" if number % 2 else f"<div class=said>{safe(part.strip())}</div>"


def file_section(files: Mapping[str, bytes]) -> Iterator[str]:
    if files:
        yield "<h2>Files of the newest version</h2>"
    for path, content in files.items():
        text = content.decode(errors="replace")
        yield f"<details><summary>{safe(path)}</summary><pre>{safe(text)}</pre></details>"


def figure(path: str, content: bytes) -> str:
    """Return a picture as HTML; SVG is not shown, since it can contain programs."""
    kind = recognise(content).kind.rpartition(" ")[2] if len(content) <= MAX_PICTURE_BYTES else ""
    if kind not in TYPES:
        return ""
    data = b64encode(content).decode()
    name = safe(path)
    image = f'<img src="data:{TYPES[kind]};base64,{data}" alt="{name}">'
    return f"<figure>{image}<figcaption>{name}</figcaption></figure>"
