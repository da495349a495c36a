"""The files beside a program that tell its history: written once, appended to, and never over something else."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from team.states import STARTED, chat, planned, reviewed

from septet.chat.artefact_files import CELLS, HISTORY, ArtefactFiles, adds_file
from septet.chat.export import transcript
from septet.domain.events import ChatStarted, Event, PersonSpoke, Recorded, RunFinished, VersionWritten
from septet.domain.files import FileRef, tree_of
from septet.domain.plans import open_plan_text
from septet.domain.runs import RunResult
from septet.stores.memory import MemoryBlobs
from septet.workspace.files import Workspace

pytestmark = pytest.mark.anyio
TEAM = replace(STARTED.team, keepsakes=("plan", "versions", "reviews", "history", "cells"))


def log_of(*events: Event, started: ChatStarted = STARTED) -> list[Recorded]:
    begun = [replace(started, team=TEAM), *planned()[1:], *events]
    return [
        Recorded(chat="c", seq=seq, at=float(seq), event=event) for seq, event in enumerate(begun, start=1)
    ]


async def version(number: int, blobs: MemoryBlobs, code: bytes) -> VersionWritten:
    file = FileRef(path="main.py", sha256=await blobs.put(code), size=len(code))
    return VersionWritten(number=number, files=(file,), tree=tree_of((file,)))


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


async def test_plan_versions_reviews_history_and_cells_are_written_as_they_come(tmp_path: Path) -> None:
    blobs = MemoryBlobs()
    first = await version(1, blobs, b"x = 1\n")
    cell = RunFinished(
        id="r", purpose="run", command="c", tree=first.tree, result=RunResult(exit_code=0), mode="cell"
    )
    log = log_of(first, cell, *reviewed(1, accept=True))
    files = ArtefactFiles([Workspace(tmp_path)], blobs)
    for number, recorded in enumerate(log, start=1):
        await files.add_event(chat([one.event for one in log[:number]]), recorded)
    state = chat([one.event for one in log])
    assert state.plan.current is not None
    whole = {
        "MasterPlan.txt": open_plan_text(state.plan.current),
        "script_v1.py": "x = 1\n",
        "review_v1.txt": "verdict: accept\n",
        HISTORY: transcript(log),
        CELLS: "# %%\nx = 1\n\n",
    }
    assert texts(tmp_path) == whole
    later = tmp_path / "later"
    later.mkdir()
    await ArtefactFiles([Workspace(later)], blobs).catch_up(state, log)
    assert texts(later) == whole, "what a crash prevented is written when the chat goes on"


async def test_what_stands_there_already_is_left_alone(tmp_path: Path) -> None:
    blobs = MemoryBlobs()
    log = log_of(await version(1, blobs, b"x = 1\n"))
    (tmp_path / "script_v1.py").write_text("mine")
    (tmp_path / HISTORY).write_text("mine")
    await ArtefactFiles([Workspace(tmp_path)], blobs).catch_up(chat([one.event for one in log]), log)
    assert (tmp_path / "script_v1.py").read_text() == "mine"
    assert (tmp_path / HISTORY).read_text() == "mine"


async def test_where_a_program_blocks_a_path_the_next_folder_is_used(tmp_path: Path) -> None:
    blobs = MemoryBlobs()
    log = log_of(await version(1, blobs, b"x = 1\n"))
    one, other = tmp_path / "one", tmp_path / "other"
    for name in ("script_v1.py", HISTORY):
        (one / name).mkdir(parents=True)
    other.mkdir()
    files = ArtefactFiles([Workspace(one), Workspace(other)], blobs)
    await files.catch_up(chat([one.event for one in log]), log)
    assert texts(other) == {"script_v1.py": "x = 1\n", HISTORY: transcript(log)}
    assert set(texts(one)) == {"MasterPlan.txt"}


def test_a_plan_a_version_and_a_review_each_add_a_file() -> None:
    assert not adds_file(PersonSpoke(text="x"))
    assert adds_file(VersionWritten(number=1, files=(), tree="t"))
