"""Validates and formats requested file changes: paths inside the workspace, complete Python, ruff's layout, a diff."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Collection, Container, Mapping
from pathlib import Path

from anyio import to_thread

from septet.common.values import Value
from septet.domain.files import FileChange, FileRef
from septet.domain.plans import Refusal
from septet.ports import Blobs
from septet.team.context import Context
from septet.workspace.edits import diff_text
from septet.workspace.files import path_problem
from septet.workspace.validation import elision_of, fault_text, file_fault

PATIENCE = 20.0
SETTINGS = ("--isolated", "--stdin-filename")


async def format_python(source: str, path: str) -> str:
    """Sort imports and format by ruff; the source is unchanged if ruff is missing or would change its meaning."""
    return await to_thread.run_sync(format_source, source, path)


def format_source(source: str, path: str) -> str:
    command = ruff()
    if command is None or not path.endswith(".py"):
        return source
    sort = [command, "check", "--select", "I", "--fix", "--quiet", *SETTINGS, path, "-"]
    looks = [command, "format", "--quiet", *SETTINGS, path, "-"]
    return faithful(source, pipe_through(looks, pipe_through(sort, source)))


def ruff() -> str | None:
    """Find the command beside this interpreter or on PATH."""
    beside = Path(sys.executable).with_name("ruff")
    return str(beside) if beside.exists() else shutil.which("ruff")


def pipe_through(command: list[str], source: str) -> str:
    """The command's output for the source; the source itself if the command fails."""
    try:
        run = subprocess.run(
            command, input=source.encode(), capture_output=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return source
    return run.stdout.decode() if run.returncode == 0 and run.stdout else source


def faithful(before: str, after: str) -> str:
    """The new text if its syntax tree is the same except for imports, else the old text."""
    try:
        return after if split_imports(before) == split_imports(after) else before
    except (SyntaxError, ValueError, RecursionError):
        return before


def split_imports(source: str) -> tuple[list[str], list[str]]:
    """All imported names, sorted, and all other statements in order."""
    tree = ast.parse(source)
    others = [ast.dump(node) for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return sorted(set(import_aliases(tree))), others


def import_aliases(tree: ast.AST) -> list[str]:
    """Each imported name separately, so that joining and splitting import lines makes no difference."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [f"{alias.name} as {alias.asname}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.level}{node.module}.{alias.name} as {alias.asname}" for alias in node.names]
    return found


LARGEST = 1 << 20

Texts = Mapping[str, str]
Wishes = Mapping[str, str | None]
"""New texts by path; None deletes the file."""


class Change(Value):
    """Valid changes with their texts and their diff."""

    texts: Mapping[str, str | None]
    diff: str


def wishes(before: Context, after: Context) -> Wishes:
    """The differences that an action made to the project's files."""
    old = {file.rel_path: file.content for file in before.project_code}
    new = {file.rel_path: file.content for file in after.project_code}
    return {path: new.get(path) for path in sorted(old.keys() | new.keys()) if old.get(path) != new.get(path)}


async def prepare_change(before: Texts, wished: Wishes, own: Collection[str] | None = ()) -> Change | Refusal:
    """Validate all files: one bad file refuses the whole change. New files and `own` ones are formatted; none if `own`
    is None.
    """
    texts: dict[str, str | None] = {}
    for path, text in wished.items():
        named = None if path in before else path_problem(path, [*before, *wished])
        trouble = named or text_trouble(path, text, before.get(path, ""))
        if trouble is not None:
            return trouble
        ours = own is not None and (path not in before or path in own)
        texts[path] = text if text is None or not ours else await format_python(text, path)
    changed = {path: text for path, text in texts.items() if before.get(path) != text}
    return Change(
        texts=changed, diff="".join(diff_text(path, before.get(path), text) for path, text in changed.items())
    )


def text_trouble(path: str, text: str | None, before: str) -> Refusal | None:
    """Why the file may not have this text; placeholders that it had `before` may stay."""
    if text is None:
        return None
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return Refusal(reason=f"'{path}' would hold a character that UTF-8 does not have")
    if size > LARGEST:
        return Refusal(reason=f"'{path}' would have {size:,} bytes, {LARGEST:,} are the most")
    fault = file_fault(text, path) if path.endswith(".py") else None
    if fault is not None and fault == elision_of(text, path) and elision_of(before, path) is not None:
        return None
    return Refusal(reason=f"nothing was written, for {fault_text(path, fault)}") if fault else None


async def file_changes(texts: Wishes, known: Container[str], blobs: Blobs) -> tuple[FileChange, ...]:
    """Store the contents as blobs and return the changes for the log; `known` files are changed, others new."""
    changes: list[FileChange] = []
    for path, text in texts.items():
        if text is None:
            changes.append(FileChange(path=path, kind="deleted"))
        else:
            content = text.encode()
            kind = "changed" if path in known else "new"
            changes.append(
                FileChange(path=path, kind=kind, size=len(content), sha256=await blobs.put(content))
            )
    return tuple(changes)


def files_after(files: Mapping[str, FileRef], changes: tuple[FileChange, ...]) -> tuple[FileRef, ...]:
    """The files after the changes, in order."""
    after = dict(files)
    for change in changes:
        if change.kind == "deleted":
            after.pop(change.path, None)
        else:
            after[change.path] = FileRef(path=change.path, sha256=change.sha256, size=change.size)
    return tuple(after[path] for path in sorted(after))
