"""What can be learnt from: code, Markdown, notebooks, question-and-answer dumps, chats that ended done."""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from pathlib import Path
from textwrap import dedent

import msgspec

from septet.common.notebooks import read_notebook
from septet.domain.events import Recorded, RunFinished
from septet.domain.examples import Example, signature
from septet.domain.plans import Refusal
from septet.domain.reduce import fold
from septet.domain.replies import code_blocks
from septet.domain.runs import NO_FAILURES
from septet.errors import BadUsage
from septet.ports import Blobs
from septet.ways.endings import ending

LARGEST = 8 << 20
POST = re.compile(r"<row\b(?P<attributes>[^>]*)/>")
ATTRIBUTE = re.compile(r'\b(Body|Title)="([^"]*)"')
CODE = re.compile(r"<pre[^>]*><code>(.*?)</code></pre>", re.DOTALL)


def lessons_in(path: Path) -> list[Example]:
    """Every example in a file or in all files of a folder."""
    if not path.exists():
        raise BadUsage(f"{path} does not exist", "name a file or a folder to learn from")
    found = [path] if path.is_file() else sorted(path.rglob("*"))
    files = [one for one in found if one.suffix in READERS and one.is_file()]
    return [example for file in files for example in lessons_of(file)]


def lessons_of(path: Path) -> list[Example]:
    if path.stat().st_size > LARGEST:
        return []
    text = path.read_text(encoding="utf-8", errors="replace")
    return list(READERS[path.suffix](text, str(path)))


def from_python(text: str, source: str) -> Iterator[Example]:
    """Each function and class that says what it does."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = text.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            said = ast.get_docstring(node)
            code = dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))
            if said:
                yield Example(
                    title=node.name, text=said.splitlines()[0], code=code, source=f"{source}:{node.lineno}"
                )


def from_markdown(text: str, source: str) -> Iterator[Example]:
    """Each fenced block, under the heading above it."""
    heading = ""
    for part in re.split(r"^(?=#+ )", text, flags=re.MULTILINE):
        if part.startswith("#"):
            heading = part.splitlines()[0].lstrip("# ")
        blocks = code_blocks(part)
        for block in () if isinstance(blocks, Refusal) else blocks:
            said = part.split("```", 1)[0].split("\n", 1)[-1].strip()
            yield Example(title=heading, text=said[:500], code=block.text, source=source)


def from_notebook(text: str, source: str) -> Iterator[Example]:
    """Each code cell, with the text cell before it."""
    try:
        cells = read_notebook(text.encode())
    except ValueError:
        return
    said = ""
    for cell in cells:
        content = "".join(cell.source)
        if cell.cell_type == "code":
            title = said.splitlines()[0].lstrip("# ") if said else ""
            yield Example(title=title, text=said, code=content, source=source)
        else:
            said = content


def from_lines(text: str, source: str) -> Iterator[Example]:
    """A dump of questions and answers, one JSON object a line: title, text, code."""
    for line in text.splitlines():
        try:
            found = msgspec.json.decode(line, type=dict[str, object])
        except msgspec.MsgspecError:
            continue
        parts = {name: str(found.get(name, "")) for name in ("title", "text", "code")}
        if parts["code"]:
            yield Example(**parts, source=str(found.get("source", source)))


def from_posts(text: str, source: str) -> Iterator[Example]:
    """A Stack-Exchange-like dump: rows with HTML bodies."""
    for post in POST.finditer(text):
        said_of = dict(ATTRIBUTE.findall(post["attributes"]))
        body = unescape(said_of.get("Body", ""))
        said = re.sub(r"<[^>]+>", " ", CODE.sub(" ", body))
        for code in CODE.findall(body):
            title = unescape(said_of.get("Title", "")) or said.strip()[:80]
            yield Example(title=title, text=said.strip()[:500], code=unescape(code), source=source)


READERS: dict[str, Callable[[str, str], Iterator[Example]]] = {
    ".py": from_python,
    ".md": from_markdown,
    ".ipynb": from_notebook,
    ".jsonl": from_lines,
    ".xml": from_posts,
}


async def from_chat(log: Sequence[Recorded], blobs: Blobs) -> list[Example]:
    """From a chat that ended done: each error with the code that came after it, and the final program."""
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
    """What went wrong on the way, each once."""
    runs = [one.event for one in log if isinstance(one.event, RunFinished)]
    failed = [run.result for run in runs if not run.result.succeeded and run.purpose not in NO_FAILURES]
    return list(dict.fromkeys(signature(result) for result in failed))
