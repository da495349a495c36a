"""What the person changes in the folder while the team works in a copy: merged into a version, then into the base."""

from pathlib import Path

import pytest
from team.states import chat, planned

from septet.agents.protection import merge_edits, merged_edit, with_edits_merged, with_folder_protection
from septet.agents.records import Rehearsal
from septet.agents.run_context import RunContext
from septet.domain.events import BaseMoved, Event, PersonSpoke, RunFinished, TurnOpened, VersionWritten
from septet.domain.files import FileRef, tree_of
from septet.domain.runs import RunResult
from septet.domain.state import State
from septet.ports import Record
from septet.runtime.bus import MemoryBus
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.stores.memory import MemoryBlobs
from septet.workspace.base import look_through
from septet.workspace.scratch import Scratch

pytestmark = pytest.mark.anyio
LINES = "".join(f"line {number}\n" for number in range(9))
TEAMS = LINES.replace("line 8", "the team's")


class Shared:
    """A folder of the person's, the team's copy of it, and a version that changes one file and deletes another."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        for name in ("a.txt", "b.txt", "gone.txt"):
            (self.root / name).write_text(LINES)
        self.scratch = Scratch(folder / "home", self.root, look_through(self.root)[1])
        self.scratch.copy_base()
        self.scratch.rebuild()
        self.blobs = MemoryBlobs()
        self.context = RunContext(self.scratch, UnsafeLocal(), self.blobs, MemoryBus())

    async def version(self) -> VersionWritten:
        address = await self.blobs.put(TEAMS.encode())
        files = (FileRef(path="a.txt", sha256=address, size=len(TEAMS)),)
        return VersionWritten(number=1, files=files, deleted=("gone.txt",), tree=tree_of(files))

    async def merged(self, *events: Event) -> VersionWritten | BaseMoved | None:
        return await merge_edits(chat([*planned(), *events]), self.scratch, self.blobs)

    async def texts(self, version: VersionWritten) -> dict[str, str]:
        return {one.path: (await self.blobs.get(one.sha256)).decode() for one in version.files}


@pytest.fixture
def shared(tmp_path: Path) -> Shared:
    return Shared(tmp_path)


async def test_without_an_edit_nothing_is_merged_and_without_a_version_the_base_moves(shared: Shared) -> None:
    assert await shared.merged(await shared.version()) is None
    (shared.root / "b.txt").write_text("mine\n")
    moved = await shared.merged()
    assert isinstance(moved, BaseMoved)
    assert [one.path for one in moved.changed] == ["b.txt"]
    assert await shared.blobs.get(moved.changed[0].sha256) == b"mine\n"


async def test_an_edit_beside_the_teams_change_is_in_the_next_version_and_then_in_the_base(
    shared: Shared,
) -> None:
    written = await shared.version()
    (shared.root / "a.txt").write_text(LINES.replace("line 0", "mine"))
    found = await shared.merged(written)
    assert isinstance(found, VersionWritten)
    assert (found.number, found.found, found.deleted) == (2, True, ("gone.txt",))
    assert found.note == "with what was changed in the folder meanwhile"
    assert found.tree != tree_of(found.files), "the base is another one, too"
    assert await shared.texts(found) == {"a.txt": TEAMS.replace("line 0", "mine")}
    assert found.files[0].size == len(TEAMS.replace("line 0", "mine"))
    after = await shared.merged(written, found)
    assert isinstance(after, BaseMoved)
    assert (len(after.changed), after.conflicts) == (1, ())


async def test_edits_of_the_same_line_are_a_conflict_and_both_are_kept(shared: Shared) -> None:
    (shared.root / "a.txt").write_text(LINES.replace("line 8", "mine"))
    found = await shared.merged(await shared.version())
    assert isinstance(found, VersionWritten)
    assert found.note.endswith("meanwhile; not merged: a.txt")
    text = (await shared.texts(found))["a.txt"]
    assert "mine" in text
    assert "the team's" in text


@pytest.mark.parametrize("how", ["deleted", "a link", "a secret"])
async def test_what_cannot_be_merged_leaves_the_teams_file(shared: Shared, how: str) -> None:
    place = shared.root / "a.txt"
    place.unlink()
    if how == "a link":
        place.symlink_to("b.txt")
    elif how == "a secret":
        place.write_text(f"{LINES}aws_secret_access_key = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYzz1234abcd'\n")
    found = await shared.merged(await shared.version())
    assert isinstance(found, VersionWritten)
    assert await shared.texts(found) == {"a.txt": TEAMS}
    assert found.note.endswith("; not merged: a.txt")


async def test_a_file_that_the_person_still_edits_is_not_deleted(shared: Shared) -> None:
    (shared.root / "gone.txt").write_text("needed\n")
    found = await shared.merged(await shared.version())
    assert isinstance(found, VersionWritten)
    assert found.deleted == ()
    assert found.note.endswith("; not merged: gone.txt")


async def test_a_file_that_both_delete_is_no_conflict(shared: Shared) -> None:
    (shared.root / "gone.txt").unlink()
    found = await shared.merged(await shared.version())
    assert isinstance(found, VersionWritten)
    assert (found.deleted, "not merged" in found.note) == (("gone.txt",), False)


async def test_nothing_is_merged_in_the_middle_of_a_turn_unless_it_has_only_merged_so_far(
    shared: Shared,
) -> None:
    written = await shared.version()
    (shared.root / "b.txt").write_text("mine\n")
    opened = TurnOpened(speaker="runner")

    async def edit(*events: Event) -> VersionWritten | BaseMoved | None:
        return await merged_edit(chat([*planned(), *events]), shared.context)

    found = await edit(written, opened)
    assert isinstance(found, VersionWritten)
    assert isinstance(await edit(written, opened, found), BaseMoved)
    run = RunFinished(id="r", purpose="run", command="c", tree=written.tree, result=RunResult(exit_code=0))
    begun = await edit(TurnOpened(speaker="coder"), written, run)
    assert begun is None, "the turn has written a version of its own"


@pytest.mark.parametrize("runs", [True, False])
async def test_who_runs_programs_goes_on_with_what_was_merged_and_any_others_turn_ends(
    shared: Shared, runs: bool
) -> None:
    async def speak(state: State, record: Record) -> Event | None:
        return PersonSpoke(text="on")

    state = chat([*planned(), await shared.version(), TurnOpened(speaker="x")])
    for agent, text in ((with_edits_merged, "mine\n"), (with_folder_protection, "mine again\n")):
        (shared.root / "b.txt").write_text(text)
        rehearsal = Rehearsal(state)
        await rehearsal.play(agent(speak, shared.context, runs=runs))
        kinds = [type(one) for one in rehearsal.events]
        assert kinds == ([VersionWritten, BaseMoved, PersonSpoke] if runs else [VersionWritten])
        if runs:
            assert shared.scratch.base.read("b.txt") == text.encode()
            assert shared.scratch.work.read("b.txt") == text.encode()
