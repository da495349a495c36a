"""Reads cells of code from a Python file with `# %%` lines or a Jupyter notebook."""

import re

import msgspec

from septet.common.values import Value

CELL_MARKER = re.compile(r"^#\s*%%.*$", re.MULTILINE)
NOTEBOOK_MAGICS = re.compile(r"^\s*%(?:matplotlib|config|load_ext|autoreload)\b.*$", re.MULTILINE)
"""Lines that only affect how a notebook shows things."""


class NotebookCell(Value):
    cell_type: str = ""
    source: str | list[str] = ""


class Notebook(Value):
    cells: list[NotebookCell]


def split_cells(text: str) -> tuple[str, ...]:
    """The parts between `# %%` lines; the whole text if there are none."""
    return tuple(part.strip("\n") + "\n" for part in CELL_MARKER.split(text) if part.strip())


def read_notebook(content: bytes) -> list[NotebookCell]:
    """All cells of a notebook. Raises ValueError if it is not a notebook."""
    try:
        return msgspec.json.decode(content, type=Notebook).cells
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from error


def notebook_cells(content: bytes) -> tuple[str, ...]:
    """The code cells of a notebook, in order. Raises ValueError if it is not a notebook."""
    texts = ["".join(cell.source) for cell in read_notebook(content) if cell.cell_type == "code"]
    plain = [NOTEBOOK_MAGICS.sub("", text) for text in texts]
    return tuple(text.strip("\n") + "\n" for text in plain if text.strip())
