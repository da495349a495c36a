"""Writes artefact files beside the program, which document its history. None is changed after it was written.

The team key `keepsakes` selects them: `plan` is MasterPlan.txt, `versions` are script_vN.py, `reviews` are
review_vN.txt, `history` is chat_history.txt, to which every message is appended; `cells` is cells.py, to which every
cell is appended that succeeded in the kernel: `septet exec --kernel cells.py` runs them again.
"""

from collections.abc import Sequence

from septet.domain.events import Event, PlanApproved, Recorded, ReviewGiven, RunFinished, VersionWritten
from septet.domain.files import FileRef, main_of
from septet.domain.plans import open_plan_text
from septet.domain.state import State
from septet.ports import Blobs
from septet.workspace.files import Workspace, in_thread

HISTORY = "chat_history.txt"
CELLS = "cells.py"


class ArtefactFiles:
    """Writes into the first folder; if something of a program's blocks a path there, into the next."""

    def __init__(self, folders: Sequence[Workspace], blobs: Blobs) -> None:
        self.folders = folders
        self.blobs = blobs
        self._checked: set[str] = set()
        self._history = b""

    async def catch_up(self, state: State, log: Sequence[Recorded]) -> None:
        """Write what a crash prevented, before anything new happens."""
        await self.write_missing(state)
        if "history" in state.team.keepsakes:
            from septet.chat.export import transcript

            self._history = transcript(log).encode()
            await self.extend(HISTORY, self._history)
        await self.add_cells(state)

    async def add_event(self, state: State, recorded: Recorded) -> None:
        """Write what this event adds; `state` is the state after it."""
        if adds_file(recorded.event):
            await self.write_missing(state)
        if "history" in state.team.keepsakes:
            from septet.chat.export import transcript_entry

            self._history += transcript_entry(recorded).encode()
            await self.extend(HISTORY, self._history)
        if isinstance(recorded.event, RunFinished):
            await self.add_cells(state)

    async def add_cells(self, state: State) -> None:
        """Append the cells that are missing."""
        if "cells" in state.team.keepsakes:
            from septet.ways.pair.members import good_cells  # heavy, and only needed here

            cells = [f"# %%\n{code}\n" for code in await good_cells(state, self.blobs)]
            await self.extend(CELLS, "".join(cells).encode())

    async def write_missing(self, state: State) -> None:
        """Look for each file once; a version's content is fetched only if its file is missing."""
        wanted = {**master_plan_file(state), **version_files(state), **review_files(state)}
        for path in wanted.keys() - self._checked:
            folder = next((folder for folder in self.folders if not folder.obstacle(path)), None)
            if folder is not None and await folder.content(path) is None:
                source = wanted[path]
                content = source if isinstance(source, bytes) else await self.blobs.get(source.sha256)
                await in_thread(
                    lambda path=path, content=content, folder=folder: folder.create(path, content)
                )
            self._checked.add(path)

    async def extend(self, path: str, whole: bytes) -> None:
        """Append what the file lacks. A file with other content, or a path that is no file, is left alone."""
        for folder in self.folders:
            existing = b"" if folder.obstacle(path) else await folder.content(path) or b""
            if not folder.obstacle(path) and whole.startswith(existing):
                if whole != existing:
                    await in_thread(
                        lambda folder=folder, existing=existing: folder.append(path, whole[len(existing) :])
                    )
                return


def adds_file(event: Event) -> bool:
    return isinstance(event, PlanApproved | VersionWritten | ReviewGiven)


def version_files(state: State) -> dict[str, FileRef]:
    if "versions" not in state.team.keepsakes:
        return {}
    run = state.plan.current.run if state.plan.current else ""
    mains = {version.number: main_of(version.files, run) for version in state.work.versions}
    return {f"script_v{number}.py": file for number, file in mains.items() if file}


def master_plan_file(state: State) -> dict[str, bytes]:
    wanted = "plan" in state.team.keepsakes and state.plan.approved and state.plan.current is not None
    return (
        {"MasterPlan.txt": open_plan_text(state.plan.current).encode()}
        if wanted and state.plan.current
        else {}
    )


def review_files(state: State) -> dict[str, bytes]:
    wanted = state.work.reviews if "reviews" in state.team.keepsakes else ()
    if not wanted:
        return {}
    from septet.team.reviews import review_text

    return {f"review_v{review.version}.txt": f"{review_text(review)}\n".encode() for review in wanted}
