"""Cells as people keep them; nothing that is no notebook is taken for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.common.notebooks import notebook_cells, split_cells

CODE = st.from_regex(r"[a-z]{1,5} = [0-9]{1,3}\n", fullmatch=True)


@given(st.lists(CODE, min_size=1, max_size=5), st.sampled_from(["# %%", "#%%", "# %% [markdown] title"]))
def test_marked_cells_come_back_in_order(cells: list[str], mark: str) -> None:
    assert split_cells("".join(f"{mark}\n{cell}" for cell in cells)) == tuple(cells)


@given(st.text())
def test_any_text_is_cells_that_hold_all_of_its_code(text: str) -> None:
    assert all(cell.strip() for cell in split_cells(text))


@given(st.binary())
def test_what_is_no_notebook_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        notebook_cells(content)


def test_a_notebooks_code_without_what_only_tells_how_to_show() -> None:
    content = (
        b'{"cells": [{"cell_type": "code", "source": "%matplotlib inline\\nx = 1"}, {"cell_type": "raw"}]}'
    )
    assert notebook_cells(content) == ("x = 1\n",)
