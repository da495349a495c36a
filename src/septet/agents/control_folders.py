"""Temporary folders for test runs outside the workspace: with a changed program, or a part of the newest version."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

from septet.agents.reply_files import sources
from septet.common.temporary import temporary_folder
from septet.domain.events import RunStarted
from septet.domain.files import Layout, belongs_to_tests, is_test
from septet.domain.runs import HOLLOW, ControlName
from septet.domain.state import State
from septet.ports import Blobs
from septet.team.baseline import touches_tests
from septet.team.controls import MUTANTS, transformed_sources
from septet.workspace.files import Workspace, in_thread
from septet.workspace.modules import modules_under_test
from septet.workspace.scratch import Scratch


def possible_controls(program: Mapping[str, str]) -> list[ControlName]:
    """The controls that change something in the program."""
    return [one for one in (HOLLOW, *MUTANTS) if transformed_sources(program, one)]


async def program_of(state: State, blobs: Blobs, scratch: Scratch | None) -> dict[str, str]:
    """The sources that controls change: the version's program, or the base's files that its tests use."""
    texts = await sources(state, blobs)
    program = {path: text for path, text in texts.items() if not is_test(path)}
    if scratch is None or not touches_tests(state) or transformed_sources(program, HOLLOW):
        return program
    tests = [text for path, text in texts.items() if is_test(path) and path.endswith(".py")]
    return await in_thread(lambda: modules_under_test(scratch.base.root, tests))


@asynccontextmanager
async def control_folder(
    state: State, blobs: Blobs, scratch: Scratch | None, program: Mapping[str, str]
) -> AsyncGenerator[Workspace, None]:
    """A temporary workspace with the tests and a changed program, or with the tests alone if there is no program."""
    with temporary_folder("tests") as folder:
        workspace = Workspace(folder)
        if scratch is not None:
            await in_thread(lambda: scratch.fill(folder))
        files = state.work.version.files if state.work.version else ()
        kept = tuple(file for file in files if is_test(file.path) or (program and file.path not in program))
        await workspace.write_layout(Layout(files=kept), blobs)
        await in_thread(lambda: [workspace.create(path, text.encode()) for path, text in program.items()])
        yield workspace


Takes = Callable[[str], bool]
"""Selects, by path, the files of a version that are copied over the base."""


def part_of_version(started: RunStarted) -> Takes | None:
    """The part of the newest version that a run in its own folder uses; None for a run in the workspace."""
    match started.purpose, started.about.partition(" ")[0]:
        case ("baseline", _) | ("tests again", "base"):
            return lambda path: False
        case "tests again", "now":
            return lambda path: True
        case ("tests as found", _) | ("tests again", "found"):
            return lambda path: not belongs_to_tests(path)
        case (("tests on base" | "check on base"), _):
            return belongs_to_tests
        case _:
            return None


@asynccontextmanager
async def tree_folder(
    state: State, blobs: Blobs, scratch: Scratch | None, takes: Takes
) -> AsyncGenerator[Workspace, None]:
    """A temporary copy of the base with a part of the newest version."""
    version = state.work.version
    assert scratch is not None, "a chat with a baseline has a copy of the base"
    with temporary_folder("tests") as folder:
        workspace = Workspace(folder)
        await in_thread(lambda: scratch.fill(folder))
        files = tuple(file for file in (version.files if version else ()) if takes(file.path))
        await workspace.write_layout(Layout(files=files), blobs)
        gone = [folder / path for path in (version.deleted if version else ()) if takes(path)]
        await in_thread(lambda: [path.unlink(missing_ok=True) for path in gone])
        yield workspace
