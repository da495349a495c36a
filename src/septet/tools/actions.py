"""The autocoder's actions: functions from a project to a project that write, edit and delete its files."""

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta

from septet.domain.plans import Refusal
from septet.team.context import Context
from septet.tools.registry import Tool, tool_of_function
from septet.workspace.edits import insert_lines, remove_lines, replace_lines, replace_text
from septet.workspace.files import path_problem

Effect = Context | Refusal
MAIN = "main.py"
Path = Annotated[str, Meta(description="A path inside the project, e.g. main.py")]
Line = Annotated[int, Meta(description="Counted from 1")]
Code = Annotated[str, Meta(description="Whole lines, nothing left out")]


def create(context: Context, code: Code, test_code: Code = "") -> Effect:
    """Start the project: write main.py and, in test_main.py, its tests."""
    if context.file(MAIN) is not None:
        return Refusal(reason=f"{MAIN} exists already; use write_code or one of the edits")
    return create_file_change(context, MAIN, code, test_code)


def create_new_file(context: Context, path: Path, code: Code, test_code: Code = "") -> Effect:
    """Write a file that does not exist yet and, beside it, its tests."""
    if context.file(path) is not None:
        return Refusal(reason=f"'{path}' exists already; use write_code or one of the edits")
    return create_file_change(context, path, code, test_code)


def create_file_change(context: Context, path: str, code: str, test_code: str) -> Effect:
    folder, slash, name = path.rpartition("/")
    files = {path: code, **({f"{folder}{slash}test_{name}": test_code} if test_code.strip() else {})}
    for one in files:
        if trouble := path_problem(one, context.filetree):
            return trouble
    for one, text in files.items():
        context = context.with_file(one, text)
    return context


def write_code(context: Context, path: Path, code: Code) -> Effect:
    """Write a whole file, new or instead of the one that is there."""
    trouble = None if path in context.filetree else path_problem(path, context.filetree)
    return trouble or context.with_file(path, code)


def delete_file(context: Context, path: Path) -> Effect:
    """Delete a file; the one that starts the program stays."""
    if path in (context.run.split() or [MAIN]):
        return Refusal(reason=f"{path} is the program itself and cannot be deleted")
    return context.without_file(path) if context.file(path) is not None else missing_file(context, path)


def insert_code(context: Context, path: Path, line: Line, code: Code) -> Effect:
    """Insert lines before a line; one past the last line appends."""
    return edit_file_change(context, path, lambda text: insert_lines(text, line, code))


def replace_code(context: Context, path: Path, start_line: Line, end_line: Line, code: Code) -> Effect:
    """Replace the lines from start_line to end_line, both included."""
    return edit_file_change(context, path, lambda text: replace_lines(text, start_line, end_line, code))


def remove_code(context: Context, path: Path, start_line: Line, end_line: Line) -> Effect:
    """Remove the lines from start_line to end_line, both included."""
    return edit_file_change(context, path, lambda text: remove_lines(text, start_line, end_line))


def edit_text(context: Context, path: Path, old: str, new: str) -> Effect:
    """Replace a piece of text that stands in the file exactly once."""
    return edit_file_change(context, path, lambda text: replace_text(text, old, new))


def edit_file_change(context: Context, path: str, edit: Callable[[str], str | Refusal]) -> Effect:
    text = context.file(path)
    if text is None:
        return missing_file(context, path)
    after = edit(text)
    return after if isinstance(after, Refusal) else context.with_file(path, after)


def missing_file(context: Context, path: str) -> Refusal:
    return Refusal(reason=f"there is no '{path}'; the files are {', '.join(context.filetree) or 'none yet'}")


def file_actions() -> list[Tool]:
    functions = [
        create,
        create_new_file,
        write_code,
        insert_code,
        replace_code,
        remove_code,
        edit_text,
        delete_file,
    ]
    return [tool_of_function(function) for function in functions]
