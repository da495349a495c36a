"""Tools that change files: exactly once, all or nothing, and nothing that was not read is overwritten."""

import json
from pathlib import Path

import pytest
from tools.projects import FolderContext

from septet.domain.plans import Refusal
from septet.tools.editing import editing_tools
from septet.tools.registry import Outcome, ToolResult

pytestmark = pytest.mark.anyio
TOOLS = {one.name: one for one in editing_tools()}


@pytest.fixture
def folder(tmp_path: Path) -> FolderContext:
    (tmp_path / "a.py").write_text("x = 1\ny = 1\nz = 1\n")
    (tmp_path / "b.txt").write_bytes(b"one\r\ntwo\r\n")
    (tmp_path / ".env").write_text("KEY=1\n")
    return FolderContext(tmp_path)


async def use(context: FolderContext, tool: str, **arguments: object) -> Outcome:
    return await TOOLS[tool].use(context, json.dumps(arguments))


def change(path: str, old: str, new: str) -> dict[str, str]:
    return {"path": path, "old": old, "new": new}


async def test_several_edits_are_made_at_once(folder: FolderContext) -> None:
    edits = [
        change("a.py", "x = 1", "x = 2"),
        change("a.py", "x = 2\n", "x = 3\nw = 0\n"),
        change("./b.txt", "one\ntwo", "1\n2"),
    ]
    result = await use(folder, "edit", edits=edits)
    assert isinstance(result, ToolResult)
    assert result.summary == "edit a.py +2 \N{MINUS SIGN}1 and b.txt +2 \N{MINUS SIGN}2"
    assert folder.wished == {"a.py": "x = 3\nw = 0\ny = 1\nz = 1\n", "b.txt": "1\r\n2\r\n"}


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (change("a.py", "= 1", "= 2"), "edit 2 of 2, a.py: the text to look for stands there 2 times"),
        (change("a.py", "q = 1", "q = 2"), "does not stand there"),
        (change("a.py", "", "q = 2"), "is empty"),
        (change("a.py", "y = 1", "y = 1"), "are the same"),
        (change("c.py", "x", "y"), "there is no 'c.py'"),
        (change(".env", "KEY=1", "KEY=2"), "may not be read"),
    ],
)
async def test_if_one_edit_does_not_fit_none_is_made(
    folder: FolderContext, wrong: dict[str, str], reason: str
) -> None:
    result = await use(folder, "edit", edits=[change("a.py", "x = 1", "x = 2"), wrong])
    assert isinstance(result, Refusal)
    assert reason in result.reason
    assert folder.wished == {}


async def test_a_file_is_written_if_it_is_new_or_was_read(folder: FolderContext) -> None:
    written = await use(folder, "write", path="pkg/new.py", text="a = 1")
    assert isinstance(written, ToolResult)
    assert (written.summary, folder.wished) == ("write pkg/new.py (1 line)", {"pkg/new.py": "a = 1\n"})
    unread = await use(folder, "write", path="a.py", text="x = 5\n")
    assert isinstance(unread, Refusal)
    assert "you have not read it whole" in unread.reason
    folder.known.add("a.py")
    assert isinstance(await use(folder, "write", path="a.py", text="x = 5\n"), ToolResult)
    assert folder.wished["a.py"] == "x = 5\n"


@pytest.mark.parametrize("path", ["../a.py", "/etc/passwd", ".git/hooks/x", "A.py", ".env"])
async def test_nothing_is_written_elsewhere(folder: FolderContext, path: str) -> None:
    assert isinstance(await use(folder, "write", path=path, text="x\n"), Refusal)
    assert folder.wished == {}


async def test_files_are_deleted_together(folder: FolderContext) -> None:
    assert isinstance(await use(folder, "delete", paths=["a.py", "c.py"]), Refusal)
    assert folder.wished == {}
    assert isinstance(await use(folder, "delete", paths=["a.py", "b.txt"]), ToolResult)
    assert folder.wished == {"a.py": None, "b.txt": None}


def test_offers_hold_no_references() -> None:
    offer = TOOLS["edit"].offer()
    assert "$ref" not in json.dumps(offer.parameters)
    assert '"required": ["path", "old", "new"]' in json.dumps(offer.parameters)


async def test_one_edit_that_does_not_fit_is_told_without_its_number(folder: FolderContext) -> None:
    result = await use(folder, "edit", edits=[change("a.py", "y = 1", "y = 1")])
    assert result == Refusal(reason="a.py: `old` and `new` are the same\nNothing was changed.")


async def test_a_file_is_written_with_its_last_line_end_and_counted(folder: FolderContext) -> None:
    for text, whole, lines in (
        ("x = 1", "x = 1\n", "1 line"),
        ("x\ny\n", "x\ny\n", "2 lines"),
        ("", "", "0 lines"),
    ):
        result = await use(folder, "write", path="./new.py", text=text)
        assert result == ToolResult(text=f"written: new.py ({lines})", summary=f"write new.py ({lines})")
        assert folder.wished["new.py"] == whole
    folder.known.add("a.py")
    result = await use(folder, "write", path="a.py", text="x = 2")
    assert isinstance(result, ToolResult)
    assert result.summary == "write a.py +1 \N{MINUS SIGN}3"


def test_tools_that_edit_are_for_the_coder_and_must_change_something() -> None:
    assert [(one.name, one.edits, one.roles) for one in TOOLS.values()] == [
        (name, True, ("coder",)) for name in ("edit", "write", "delete")
    ]
