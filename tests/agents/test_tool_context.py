"""What a tool call knows of files that nobody in the team wrote: they are looked at on the disk."""

from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace
from team.states import chat, planned

from septet.agents.run_context import RunContext
from septet.agents.tool_context import CallContext
from septet.agents.tool_loop import file_refs, told_whole
from septet.domain.events import Event, ToolAnswered, ToolCalled, TurnOpened
from septet.domain.files import FileRef
from septet.domain.state import State
from septet.runtime.bus import MemoryBus
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.stores.memory import MemoryBlobs
from septet.team.context import context_of
from septet.workspace.files import Workspace
from septet.workspace.listing import FolderTexts

KNOWN = {"ours.py": "x = 1\n"}
CALL = ToolCalled(id="3.1.1", name="read", arguments="{}", by="coder", call="c1")


async def no_record(event: Event) -> State:
    raise AssertionError(event)


def call_context(folder: Path, *events: Event) -> CallContext:
    workspace = Workspace(folder)
    run_context = RunContext(workspace, UnsafeLocal(), MemoryBlobs(), MemoryBus())
    state = chat([*planned(), TurnOpened(speaker="coder"), *events])
    texts = FolderTexts(KNOWN, workspace, ())
    return CallContext(state, no_record, texts, run_context, CALL, context_of(state, KNOWN, {}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pic.bin").write_bytes(b"\0\1\2")
    (tmp_path / "notes.txt").write_text("hello\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "keys.txt").write_text("token = ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8\n")
    return tmp_path


def test_a_file_exists_if_the_team_wrote_it_or_it_has_content_on_the_disk(folder: Path) -> None:
    call = call_context(folder)
    assert [path for path in ("ours.py", "pic.bin", "notes.txt") if not call.exists(path)] == []
    assert [path for path in ("none.txt", "empty.txt", "../x", "/etc/passwd") if call.exists(path)] == []


def test_a_file_with_a_key_is_a_secret_by_what_is_in_it(folder: Path) -> None:
    call = call_context(folder)
    assert call.secret_reason("keys.txt")
    assert call.secret_reason(".env") == "its name"
    assert [
        path for path in ("ours.py", "pic.bin", "notes.txt", "none.txt") if call.secret_reason(path)
    ] == []


def test_a_file_is_read_as_long_as_it_is_what_was_shown(folder: Path) -> None:
    content = (folder / "notes.txt").read_bytes()
    shown = FileRef(path="notes.txt", sha256=sha256(content).hexdigest(), size=len(content))
    answered = ToolAnswered(id=CALL.id, text="hello", summary="read", shown=(shown,))
    call = call_context(folder, CALL, answered)
    assert call.has_read("ours.py"), "the team wrote it"
    assert call.has_read("notes.txt")
    assert not call.has_read("pic.bin")
    (folder / "notes.txt").write_text("hello again\n")
    assert not call.has_read("notes.txt")
    assert not call_context(folder, replace(CALL, by="planner"), answered).has_read("notes.txt")


def test_paths_that_programs_print_are_those_of_the_workspace(folder: Path) -> None:
    call = call_context(folder)
    folder_of_chat = call.project.project_path
    assert call.inside(f"{folder_of_chat}/src/a.py") == "src/a.py"
    assert call.inside(folder_of_chat) == ""
    assert [call.inside(path) for path in ("src/a.py", "/etc/passwd")] == ["src/a.py", "/etc/passwd"]


@pytest.mark.anyio
async def test_a_call_names_the_files_that_it_showed_with_what_they_held_before(folder: Path) -> None:
    call = call_context(folder)
    blobs = MemoryBlobs()
    assert await file_refs(call, ["notes.txt"], blobs) == (), "it was not read"
    assert call.texts["notes.txt"] == "hello\n"
    assert told_whole(call, "It holds:\nhello\n") == {"notes.txt"}
    assert told_whole(call, "It holds hello.") == set()
    (ref,) = await file_refs(call, ["notes.txt", "pic.bin"], blobs)
    assert (ref.path, ref.size, await blobs.get(ref.sha256)) == ("notes.txt", 6, b"hello\n")
