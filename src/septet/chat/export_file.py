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
from septet.chat.names import chat_title
from septet.chat.redaction import Redaction
from septet.chat.results import result_of, run_outcome, run_title, spending_text, status
from septet.common.pictures import recognise
from septet.common.text import pluralize, printable
from septet.domain.events import Event, EvidenceFound, Recorded, RunFinished
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
:root { color-scheme: light; --ground: #f4f5f8; --sheet: #fff; --line: #d9dde6; --ink: #1b2130; --quiet: #566077;
  --good: #156c3b; --bad: #b3261e; --soft: #eef1f7; --other: #566077; --person: #2453c7; --planner: #7a2fa8;
  --coder: #0b6a80; --runner: #8a5200; --reviewer: #156c3b; --manager: #a3314f; --exemplar: #4d5a1e;
  --blue: #8b2fa0; --green: #2453c7; --red: #1d6b3a; --dim: #5d6679; --cyan: #0b6a80 }
@media (prefers-color-scheme: dark) { :root { color-scheme: dark; --ground: #0f1219; --sheet: #171b25; --line: #303747;
  --ink: #e6e9f0; --quiet: #a3adc2; --good: #6fd59a; --bad: #ff9a92; --soft: #212736; --other: #a3adc2;
  --person: #8fb1ff; --planner: #d7a3f5; --coder: #74d3e6; --runner: #f2c066; --reviewer: #6fd59a; --manager: #f79ab3;
  --exemplar: #c9d98a; --blue: #d7a3f5; --green: #8fb1ff; --red: #8fdba9; --dim: #97a1b5; --cyan: #74d3e6 } }
* { box-sizing: border-box }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; background: var(--ground); color: var(--ink);
  font: 15px/1.5 Inter, system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; font-variant-numeric: tabular-nums }
h1 { margin: 0; font-size: 1.5rem } h2 { margin: 2rem 0 .6rem; font-size: 1.15rem }
pre, code, .check { font: 13px/1.5 ui-monospace, 'DejaVu Sans Mono', monospace }
pre, .said { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0 } .check { overflow-wrap: anywhere }
pre { background: var(--soft); padding: .6rem .8rem; border-radius: 8px }
article, table, .report { background: var(--sheet); border: 1px solid var(--line); border-radius: 10px }
.report { padding: 1rem 1.2rem } .report p { margin: .4rem 0 0 }
article { --role: var(--other); border-left: 4px solid var(--role); padding: .5rem .9rem; margin: .7rem 0 }
article > strong { color: var(--role) } time, .meta, .check { color: var(--quiet) } time { font-size: .85rem }
.runner + .runner { margin-top: -.7rem; padding-top: 0; border-top: 0; border-radius: 0 0 10px 10px }
.runner:has(+ .runner) { border-bottom: 0; border-radius: 10px 10px 0 0 }
.runner + .runner:has(+ .runner) { border-radius: 0 }
.runner + .runner > strong, .runner + .runner > time { display: none }
table { border-collapse: separate; border-spacing: 0; width: 100% }
td, th { border-bottom: 1px solid var(--line); padding: .4rem .7rem; text-align: left; vertical-align: top }
th { white-space: nowrap }
tr:last-child td { border-bottom: 0 }
summary { cursor: pointer; overflow-wrap: anywhere } .good { color: var(--good) } .bad { color: var(--bad) }
.outcome { font-weight: 600 } figure { display: inline-block; margin: .5rem .8rem 0 0; color: var(--quiet) }
img { display: block; max-width: 100%; max-height: 20rem; background: #fff }
img { border: 1px solid var(--line); border-radius: 8px }
.person { --role: var(--person) } .planner { --role: var(--planner) } .coder { --role: var(--coder) }
.runner { --role: var(--runner) } .reviewer { --role: var(--reviewer) } .manager { --role: var(--manager) }
.exemplar { --role: var(--exemplar) }
.c-blue { color: var(--blue) } .c-green { color: var(--green) } .c-red { color: var(--red) }
.c-dim { color: var(--dim) } .c-cyan { color: var(--cyan) }
"""


def html_page(log: Sequence[Recorded], files: Mapping[str, bytes], made: Mapping[str, bytes]) -> str:
    """Return a page with the chat, the newest version's files, and the pictures that its runs made."""
    state = fold(log)
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{safe(chat_title(state.goal) or state.chat)}</title>',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>',
        *report_header(state),
        *evidence_section(state),
        *(picture for path, content in made.items() if (picture := figure(path, content))),
        "<main><h2>Conversation</h2>",
        *(article(recorded) for recorded in log),
        "</main>",
        *file_section(files),
        "</body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def report_header(state: State) -> Iterator[str]:
    """What the chat was for, how it ended, and what it took."""
    ended = status(state)
    tone = "good" if result_of(state).exit_code == 0 else "bad"
    facts = (state.chat, f"team {state.team.name}", pluralize(len(state.work.versions), "version"))
    yield f'<header class="report"><h1>{safe(chat_title(state.goal) or state.chat)}</h1>'
    yield f'<p class="outcome {tone}">{safe(ended[:1].upper() + ended[1:])}</p>'
    yield f'<p class="said">{safe(state.goal)}</p>'
    yield f'<p class="meta">{safe(" · ".join((*facts, spending_text(state))))}</p></header>'


def safe(text: str) -> str:
    """Escape markup, and control characters that could reorder the text."""
    return escape(printable(text))


def evidence_section(state: State) -> Iterator[str]:
    lines = result_of(state).evidence
    if not lines:
        return
    yield "<h2>Requirements</h2><table><tr><th><th>requirement and check<th>evidence<th>check written by"
    for line in lines:
        tone, mark = ("good", "✓") if line.met else ("bad", "✗")
        author = f"{line.author} only" if line.own_tests else line.author
        yield f'<tr><td class="{tone}">{mark}<td>{safe(f"{line.item} {line.requirement}")}'
        yield f'<div class="check">{safe(line.check)}</div><td>{safe(line.evidence)}<td>{safe(author)}'
    yield "</table>"


def article(recorded: Recorded) -> str:
    event = recorded.event
    who, text = speaker_and_text(recorded)
    if not text:
        return ""
    moment = datetime.fromtimestamp(recorded.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    role = who if who in ROLES else "other"
    head = f"<strong>{safe(who)}</strong> <time>{moment}</time>"
    body = run_html(event) if isinstance(event, RunFinished) else message_html(text, tone_of(event))
    return f'<article class="{role}" id="e{recorded.seq}">{head}{"".join(body)}</article>'


def tone_of(event: Event) -> str:
    """The colour of what came of something; empty where nothing did."""
    match event:
        case EvidenceFound(passed=passed):
            return "good" if passed else "bad"
        case _:
            return ""


def run_html(run: RunFinished) -> Iterator[str]:
    """A run in one line, its output folded."""
    outcome, result = run_outcome(run), run.result
    tone, mark = ("good", "✓") if outcome.good else ("bad", "✗")
    command = "" if run.purpose.startswith("tests") else f" <code>{safe(run.command)}</code>"
    title = f'<span class="{tone}">{mark}</span> {safe(run_title(run))}{command}: {safe(outcome.text)}'
    output = "\n".join(text.rstrip() for text in (result.stdout, result.stderr) if text.strip())
    yield (
        f"<details><summary>{title}</summary><pre>{safe(output)}</pre></details>"
        if output
        else (f'<div class="said">{title}</div>')
    )


def message_html(text: str, tone: str = "") -> Iterator[str]:
    """Yield fenced code as `pre`, in colours if its language is named, and the rest as plain text."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in text.split("\n"):
        if line.startswith("```"):
            parts.append((line.strip("` \r"), []))
        else:
            parts[-1][1].append(line)
    for number, (info, lines) in enumerate(parts):
        part = "\n".join(lines)
        if part.strip() and number % 2:
            yield f"<pre>{highlighted(part, info.split()[-1] if info else '')}</pre>"
        elif part.strip():
            yield f'<div class="{f"said {tone}".strip()}">{safe(part.strip())}</div>'


LONGEST_COLOURED = 100_000
COLOURS = {"bright_black": "dim", "magenta": "blue", "yellow": "red"}
"""Colours that a page has under another name."""


def highlighted(code: str, name: str) -> str:
    """Code as HTML, with the colours of its language; `name` is that of the file or of the language."""
    from rich.console import Console
    from rich.syntax import Syntax

    code = printable(code)
    language = Syntax.guess_lexer(name) if "." in name else name
    if not language or language == "default" or len(code) > LONGEST_COLOURED:
        return escape(code)
    text = Syntax(code, language, theme="ansi_light").highlight(code)
    pieces: list[str] = []
    for segment in text.render(Console(color_system="truecolor")):
        colour = segment.style.color.name if segment.style and segment.style.color else "default"
        name = COLOURS.get(colour, colour).removeprefix("bright_")
        plain = escape(segment.text)
        is_plain = name in ("default", "white") or not plain.strip()
        pieces.append(plain if is_plain else f'<span class="c-{name}">{plain}</span>')
    return "".join(pieces).rstrip("\n")


def file_section(files: Mapping[str, bytes]) -> Iterator[str]:
    if files:
        yield "<h2>Files of the newest version</h2>"
    for path, content in files.items():
        text = content.decode(errors="replace")
        yield f"<details><summary>{safe(path)}</summary><pre>{highlighted(text, path)}</pre></details>"


def figure(path: str, content: bytes) -> str:
    """Return a picture as HTML; SVG is not shown, since it can contain programs."""
    kind = recognise(content).kind.rpartition(" ")[2] if len(content) <= MAX_PICTURE_BYTES else ""
    if kind not in TYPES:
        return ""
    data = b64encode(content).decode()
    name = safe(path)
    image = f'<img src="data:{TYPES[kind]};base64,{data}" alt="{name}">'
    return f"<figure>{image}<figcaption>{name}</figcaption></figure>"
