"""Reads examples from code, Markdown, notebooks, question-and-answer dumps and chats that ended done."""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from pathlib import Path
from textwrap import dedent

import msgspec

from septet.common.notebooks import read_notebook
from septet.domain.events import Recorded, RunFinished
from septet.domain.plans import Example, Refusal, signature
from septet.domain.reduce import fold
from septet.domain.replies import code_blocks
from septet.domain.runs import DIAGNOSTIC_PURPOSES
from septet.errors import BadUsage
from septet.ports import Blobs
from septet.ways.endings import ending

MAX_FILE_BYTES = 8 << 20
POST = re.compile(r"<row\b(?P<attributes>[^>]*)/>")
ATTRIBUTE = re.compile(r'\b(Body|Title)="([^"]*)"')
CODE = re.compile(r"<pre[^>]*><code>(.*?)</code></pre>", re.DOTALL)


def examples_in(path: Path) -> list[Example]:
    """Return every example in a file, or in all files of a folder."""
    if not path.exists():
        raise BadUsage(f"{path} does not exist", "name a file or a folder to learn from")
    candidates = [path] if path.is_file() else sorted(path.rglob("*"))
    files = [file for file in candidates if file.suffix in READERS and file.is_file()]
    return [example for file in files for example in read_examples(file)]


def read_examples(path: Path) -> list[Example]:
    if path.stat().st_size > MAX_FILE_BYTES:
        return []
    text = path.read_text(encoding="utf-8", errors="replace")
    return list(READERS[path.suffix](text, str(path)))


def from_python(text: str, source: str) -> Iterator[Example]:
    """Yield each function and class that has a docstring."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = text.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            doc = ast.get_docstring(node)
            code = dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))
            if doc:
                yield Example(
                    title=node.name, text=doc.splitlines()[0], code=code, source=f"{source}:{node.lineno}"
                )


def from_markdown(text: str, source: str) -> Iterator[Example]:
    """Yield each fenced block, with the heading above it as title."""
    heading = ""
    for part in re.split(r"^(?=#+ )", text, flags=re.MULTILINE):
        if part.startswith("#"):
            heading = part.splitlines()[0].lstrip("# ")
        blocks = code_blocks(part)
        for block in () if isinstance(blocks, Refusal) else blocks:
            prose = part.split("```", 1)[0].split("\n", 1)[-1].strip()
            yield Example(title=heading, text=prose[:500], code=block.text, source=source)


def from_notebook(text: str, source: str) -> Iterator[Example]:
    """Yield each code cell, with the text cell before it."""
    try:
        cells = read_notebook(text.encode())
    except ValueError:
        return
    prose = ""
    for cell in cells:
        content = "".join(cell.source)
        if cell.cell_type == "code":
            title = prose.splitlines()[0].lstrip("# ") if prose else ""
            yield Example(title=title, text=prose, code=content, source=source)
        else:
            prose = content


def from_lines(text: str, source: str) -> Iterator[Example]:
    """Read a dump of questions and answers, one JSON object per line: title, text, code."""
    for line in text.splitlines():
        try:
            entry = msgspec.json.decode(line, type=dict[str, object])
        except msgspec.MsgspecError:
            continue
        parts = {name: str(entry.get(name, "")) for name in ("title", "text", "code")}
        if parts["code"]:
            yield Example(**parts, source=str(entry.get("source", source)))


def from_posts(text: str, source: str) -> Iterator[Example]:
    """Read a dump like Stack Exchange's: rows with HTML bodies."""
    for post in POST.finditer(text):
        attributes = dict(ATTRIBUTE.findall(post["attributes"]))
        body = unescape(attributes.get("Body", ""))
        prose = re.sub(r"<[^>]+>", " ", CODE.sub(" ", body))
        for code in CODE.findall(body):
            title = unescape(attributes.get("Title", "")) or prose.strip()[:80]
            yield Example(title=title, text=prose.strip()[:500], code=unescape(code), source=source)


READERS: dict[str, Callable[[str, str], Iterator[Example]]] = {
    ".py": from_python,
    ".md": from_markdown,
    ".ipynb": from_notebook,
    ".jsonl": from_lines,
    ".xml": from_posts,
}


async def from_chat(log: Sequence[Recorded], blobs: Blobs) -> list[Example]:
    """Return the files of a chat that ended done, each with the errors that the team overcame."""
    state = fold(log)
    ended = ending(state)
    if ended is None or ended.reason != "done" or state.work.version is None:
        return []
    errors = "; ".join(failures(log))
    examples: list[Example] = []
    for file in state.work.version.files:
        code = (await blobs.get(file.sha256)).decode(errors="replace")
        source = f"chat {state.chat}, v{state.work.version.number}, {file.path}"
        examples.append(Example(title=state.goal[:200], text=errors[:500], code=code, source=source))
    return examples


def failures(log: Sequence[Recorded]) -> list[str]:
    """Return the signatures of all failed runs, without duplicates."""
    runs = [recorded.event for recorded in log if isinstance(recorded.event, RunFinished)]
    failed = [
        run.result for run in runs if not run.result.succeeded and run.purpose not in DIAGNOSTIC_PURPOSES
    ]
    return list(dict.fromkeys(signature(result) for result in failed))
