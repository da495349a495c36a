"""Cells of code, as people keep them: a Python file with `# %%` lines, or a notebook."""

import re

import msgspec

from septet.common.values import Value

MARK = re.compile(r"^#\s*%%.*$", re.MULTILINE)
NOTEBOOK_MAGICS = re.compile(r"^\s*%(?:matplotlib|config|load_ext|autoreload)\b.*$", re.MULTILINE)
"""Lines that only tell a notebook how to show things."""


class NotebookCell(Value):
    cell_type: str = ""
    source: str | list[str] = ""


class Notebook(Value):
    cells: list[NotebookCell]


def split_cells(text: str) -> tuple[str, ...]:
    """The parts between `# %%` lines; the whole text where there are none."""
    return tuple(part.strip("\n") + "\n" for part in MARK.split(text) if part.strip())


def read_notebook(content: bytes) -> list[NotebookCell]:
    """All cells of a notebook. Raises ValueError for what is no notebook."""
    try:
        return msgspec.json.decode(content, type=Notebook).cells
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from error


def notebook_cells(content: bytes) -> tuple[str, ...]:
    """The code cells of a notebook, in order. Raises ValueError for what is no notebook."""
    texts = ["".join(cell.source) for cell in read_notebook(content) if cell.cell_type == "code"]
    plain = [NOTEBOOK_MAGICS.sub("", text) for text in texts]
    return tuple(text.strip("\n") + "\n" for text in plain if text.strip())
