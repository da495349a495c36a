"""Tools that change files: edit (old → new, all or nothing), write and delete."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from septet.common.text import join_words, pluralize
from septet.common.values import Value
from septet.domain.plans import Refusal
from septet.tools.reading import FilePath, file_path, unreadable_file
from septet.tools.registry import Tool, ToolContext, ToolResult, tool_of_function
from septet.workspace.edits import diff_text, replace_text
from septet.workspace.files import path_problem

EDITORS = ("coder",)
MINUS = "\N{MINUS SIGN}"


class Replacement(Value, forbid_unknown_fields=True):
    """A piece of a file, and what shall stand there instead."""

    path: FilePath
    old: Annotated[
        str,
        Meta(
            description="Text that stands in the file exactly once, with its indentation; whole lines are best."
        ),
    ]
    new: Annotated[str, Meta(description="What shall stand there instead.")]


def edit(
    context: ToolContext,
    edits: Annotated[tuple[Replacement, ...], Meta(min_length=1, description="One or more, in this order.")],
) -> ToolResult | Refusal:
    """Replace pieces of text files that exist. If one of the edits does not fit, none of them is made."""
    after: dict[str, str] = {}
    for number, one in enumerate(edits, start=1):
        path = file_path(context, one.path)
        text = after.get(path, context.texts.get(path))
        if text is None:
            return unreadable_file(context, path)
        changed = replaced(text, one)
        if isinstance(changed, Refusal):
            place = f"edit {number} of {len(edits)}, {path}" if len(edits) > 1 else path
            return Refusal(reason=f"{place}: {changed.reason}\nNothing was changed.")
        after[path] = changed
    counts = [count_lines(path, context.texts[path], text) for path, text in after.items()]
    for path, text in after.items():
        context.write(path, text)
    return ToolResult(text=f"changed: {join_words(counts)}", summary=f"edit {join_words(counts)}")


def replaced(text: str, one: Replacement) -> str | Refusal:
    """The text after one edit, with the line endings of the file."""
    if one.old == one.new:
        return Refusal(reason="`old` and `new` are the same")
    if "\r\n" in text and "\r\n" not in one.old:
        return replace_text(text, one.old.replace("\n", "\r\n"), one.new.replace("\n", "\r\n"))
    return replace_text(text, one.old, one.new)


def count_lines(path: str, before: str | None, after: str | None) -> str:
    """Summarise how many lines were added and removed."""
    lines = diff_text(path, before, after).splitlines()[2:]
    came = sum(line.startswith("+") for line in lines)
    went = sum(line.startswith("-") for line in lines)
    return f"{path} +{came} {MINUS}{went}"


def write(
    context: ToolContext,
    path: FilePath,
    text: Annotated[str, Meta(description="The whole content of the file, nothing left out.")],
) -> ToolResult | Refusal:
    """Write a whole file: a new one, or one that you have read whole. For small changes use edit."""
    path = file_path(context, path)
    if path not in context.texts and (trouble := path_problem(path, context.texts)):
        return trouble
    if context.exists(path) and not context.has_read(path):
        return Refusal(
            reason=f"'{path}' exists and you have not read it whole as it is now: read it, or use edit"
        )
    before = context.texts.get(path)
    whole = text if not text or text.endswith("\n") else text + "\n"
    context.write(path, whole)
    size = pluralize(whole.count("\n"), "line")
    summary = f"write {path} ({size})" if before is None else f"write {count_lines(path, before, whole)}"
    return ToolResult(text=f"written: {path} ({size})", summary=summary)


def delete(
    context: ToolContext, paths: Annotated[tuple[FilePath, ...], Meta(min_length=1)]
) -> ToolResult | Refusal:
    """Delete files of the workspace. If one of them is not there, none is deleted."""
    paths = tuple(file_path(context, path) for path in paths)
    missing = [path for path in paths if path not in context.texts]
    if missing:
        return unreadable_file(context, missing[0])
    for path in paths:
        context.write(path, None)
    return ToolResult(text=f"deleted: {names(paths)}", summary=f"delete {names(paths)}")


def names(paths: Sequence[str]) -> str:
    return join_words(list(paths))


def editing_tools() -> list[Tool]:
    return [tool_of_function(one, roles=EDITORS, edits=True) for one in (edit, write, delete)]
