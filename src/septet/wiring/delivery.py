"""Delivers a chat's work to the person's folder or a branch, and undoes deliveries; each step is an event."""

import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from hashlib import sha256
from itertools import chain, count
from pathlib import Path

from msgspec.structs import replace

from septet.agents.protection import apply_move, merge_edits
from septet.agents.run_context import RunContext
from septet.agents.runner import rehearse_version
from septet.common.temporary import temporary_folder
from septet.domain.base import DeliveredFile, FileState
from septet.domain.events import BaseMoved, ChatContinued, Delivered, DeliveryStarted, VersionWritten
from septet.domain.files import FileRef, tree_of
from septet.domain.state import State
from septet.errors import BadUsage, NoSandbox
from septet.ports import Blobs, Record, Sandbox
from septet.runtime.bus import MemoryBus
from septet.runtime.log import Log
from septet.team.evidence import shortcomings
from septet.team.layouts import named_products, products_of
from septet.ways.endings import ending
from septet.ways.table import way_of
from septet.wiring.scratches import move_base
from septet.workspace.base import look_through
from septet.workspace.delivery import (
    Contents,
    PlannedChange,
    commit_to_branch,
    diff_of,
    hand_over,
    plan_handover,
)
from septet.workspace.files import Workspace, in_thread, path_and_parents
from septet.workspace.git import repository_of
from septet.workspace.listing import LEFT_ALONE
from septet.workspace.scratch import Scratch, file_state


def is_elsewhere(state: State) -> bool:
    """Whether the person's folder is on another machine; a folder that is only not made yet is not."""
    travels = state.base is not None and bool(state.base.survey.archive)
    return travels and not Path(state.workspace).is_dir()


class Delivery:
    """The delivery of one chat's work."""

    def __init__(
        self, state: State, scratch: Scratch, blobs: Blobs, sandbox: Callable[[], Awaitable[Sandbox]]
    ) -> None:
        self.state = state
        self.scratch = scratch
        self.blobs = blobs
        self.sandbox = sandbox
        self.folder = scratch.origin
        self.contents: Contents = {}
        self.examined: dict[str, tuple[str, ...]] = {}
        """The problems of trees that were checked for this delivery."""

    async def wishes(self) -> list[PlannedChange]:
        """The version's files that differ from the base, and the wanted files that runs created."""
        version = self.state.work.version
        made = await self._made()
        refs = {**made, **{file.path: file.sha256 for file in (version.files if version else ())}}
        gone = set(version.deleted if version else ())
        self.contents |= {sha256: await self.blobs.get(sha256) for sha256 in refs.values()}
        base = await in_thread(lambda: {path: self._base(path) for path in (*refs, *gone)})
        after = {
            path: replace(base[path], sha256=sha256, size=len(self.contents[sha256]), path=path)
            for path, sha256 in refs.items()
        }
        after = {
            path: replace(one, kind="file") if one.kind == "link" else one for path, one in after.items()
        }
        wanted = {**after, **{path: FileState(path=path) for path in gone}}
        changed = {path: one for path, one in wanted.items() if one.sha256 != base[path].sha256}
        return [PlannedChange(base=base[path], after=changed[path]) for path in sorted(changed)]

    def _base(self, path: str) -> FileState:
        state = file_state(self.scratch.base.root, path)
        if state.sha256 and (content := self.scratch.base.read(path)) is not None and state.kind != "link":
            self.contents[state.sha256] = content
        return state

    async def _made(self) -> dict[str, str]:
        """Files that runs created: all of them or, if the way of working says so, those that a check names."""
        state = self.state
        hidden = await in_thread(self.scratch.hidden)
        named = named_products(state)
        wanted = named if way_of(state.team).delivers_only_checked else named | state.work.created_paths
        return {
            path: sha256
            for path, sha256 in products_of(state).items()
            if sha256
            and path in wanted
            and not path_and_parents(path) & hidden
            and LEFT_ALONE.isdisjoint(path.split("/"))
        }

    async def diff(self, only: Collection[str] = ()) -> str:
        """A diff of what a delivery would change, in all files or `only` these; afterwards, of what it changed."""
        if wishes := await self.wishes():
            check_paths(only, wishes)
            chosen = [wish for wish in wishes if not only or wish.after.path in only]
            return diff_of([(wish.base, wish.after) for wish in chosen], self.contents)
        changes = delivered_changes(self.state)
        for before, after in changes.values():
            await self._recall(before, after)
        return diff_of([pair for pair in changes.values() if pair[0] != pair[1]], self.contents)

    async def file_diffs(self) -> dict[str, str]:
        """The changes that a delivery would make, by file."""
        wishes = await self.wishes()
        return {wish.after.path: diff_of([(wish.base, wish.after)], self.contents) for wish in wishes}

    async def _recall(self, *states: FileState) -> None:
        for one in states:
            if one.sha256 and one.sha256 not in self.contents:
                self.contents[one.sha256] = await self.blobs.get(one.sha256)

    async def deliver(self, record: Record, only: Collection[str] | None = None) -> Delivered | None:
        """Deliver all or `only` these files to the folder; None if there is nothing to deliver.

        One that was interrupted is finished first.
        """
        await self.check_folder()
        finished = await self.finish(record)
        wishes = await self.wishes()
        check_paths(only or (), wishes)
        chosen = [wish for wish in wishes if only is None or wish.after.path in only]
        if not chosen:
            return finished
        files = await self._plan(chosen)
        tree = self.state.work.version.tree if self.state.work.version and chosen == wishes else ""
        unproven = await self._problems(files, chosen == wishes)
        number = 1 + len(self.state.base.deliveries if self.state.base else ())
        started = DeliveryStarted(number=number, tree=tree, files=tuple(files), unproven=unproven)
        return await self._carry_out(started, record)

    async def problems(self) -> tuple[str, ...]:
        """Problems in the folder after a complete delivery; none if the folder becomes the tree that was checked."""
        return await self._problems(await self._plan(await self.wishes()), whole=True)

    async def reopen_if_broken(self, log: Log) -> bool:
        """Whether a chat that ended as done must go on, because its work fails with the person's newest edits."""
        self.state = log.state
        if not await self.problems():
            return False
        state = await log.record(ChatContinued(budget=log.state.budget))
        while (event := await merge_edits(state, self.scratch, self.blobs)) is not None:
            state = await log.record(event)
            if isinstance(event, BaseMoved):
                await apply_move(event, self.scratch)
        self.state = state
        return True

    async def _problems(self, files: Sequence[DeliveredFile], whole: bool) -> tuple[str, ...]:
        """Check the folder's new tree, if a merge, a choice of files or an edit changes the checked one."""
        ended = ending(self.state)
        if ended is None or ended.reason != "done" or not files:
            return ()
        plain = whole and all(one.how == "written" for one in files)
        if plain and not await in_thread(self.scratch.edits):
            return ()
        version = await self._version_in_folder([one for one in files if one.how != "conflict"])
        if version.tree not in self.examined:
            self.examined[version.tree] = await self._examine(version)
        return self.examined[version.tree]

    async def _version_in_folder(self, files: Sequence[DeliveredFile]) -> VersionWritten:
        """The folder after the delivery, as a version with the current folder as its base."""
        for one in files:
            if one.after.sha256:
                await self.blobs.put(self.contents[one.after.sha256])
        refs = [
            FileRef(path=one.path, sha256=one.after.sha256, size=one.after.size)
            for one in files
            if one.after.sha256
        ]
        edits = await in_thread(self.scratch.edits)
        moment = "".join(f"{one.path}\0{one.sha256}\n" for one in edits.values())
        return VersionWritten(
            number=len(self.state.work.versions) + 1,
            files=tuple(refs),
            tree=tree_of(refs, f"folder {moment}"),
            deleted=tuple(one.path for one in files if not one.after.sha256),
            found=True,
        )

    async def _examine(self, version: VersionWritten) -> tuple[str, ...]:
        """Run the plan's checks on a copy of the folder with the delivered files in it."""
        try:
            sandbox = await self.sandbox()
        except NoSandbox as error:
            return (f"it could not be run here ({error.cause})",)
        return tuple(shortcomings(without_base_repeats(await self.rehearse(version, sandbox))))

    async def rehearse(self, version: VersionWritten, sandbox: Sandbox) -> State:
        """The state after the plan's checks of a version, in a temporary copy of the folder."""
        with temporary_folder("delivery") as made:
            rules = self.scratch.manifest.secrets
            manifest = (await in_thread(lambda: look_through(self.folder, rules)))[1]
            scratch = Scratch(made, self.folder, manifest)
            scratch.setup = self.scratch.setup
            await in_thread(lambda: (scratch.copy_base(), scratch.rebuild()))
            return await rehearse_version(
                self.state, version, RunContext(scratch, sandbox, self.blobs, MemoryBus())
            )

    async def undo(self, record: Record) -> Delivered:
        """Undo the newest delivery that changed a file, except lines that were changed since.

        An undo that was interrupted is finished.
        """
        await self.check_folder()
        finished = await self.finish(record)
        if finished is not None and finished.undoes:
            return finished
        done = newest_delivery(self.state)
        if done is None:
            cause = f"'{self.state.chat}' has delivered nothing that is not taken back"
            raise BadUsage(cause, f"septet diff {self.state.chat}")
        changed = [one for one in done.files if one.how != "conflict"]
        for one in changed:
            await self._recall(one.before, one.after)
        wishes = [
            PlannedChange(base=one.after, after=one.before, base_after=one.base_before) for one in changed
        ]
        number = 1 + len(self.state.base.deliveries if self.state.base else ())
        tree = self.state.work.version.tree if self.state.work.version else ""
        files = tuple(await self._plan(wishes))
        started = DeliveryStarted(number=number, tree=tree, files=files, undoes=done.number)
        return await self._carry_out(started, record)

    def _remove_patch(self, number: int) -> None:
        """Remove the patch of the deliveries that are taken back, the oldest of which has the number."""
        for one in self.state.base.deliveries if self.state.base else ():
            name = Path(one.patch).name
            if one.number >= number and name and Workspace(self.folder).digest(name) == one.patch_sha256:
                (self.folder / name).unlink()

    async def finish(self, record: Record) -> Delivered | None:
        """The files that an interrupted delivery has not written yet."""
        started = self.state.base.delivery if self.state.base else None
        if started is None:
            return None
        for one in started.files:
            await self._recall(*((one.after,) if one.how == "conflict" else (one.before, one.after)))
        return await self._write(started, record)

    async def _plan(self, wishes: list[PlannedChange]) -> list[DeliveredFile]:
        harmless = self.scratch.manifest.secrets.harmless
        return await in_thread(lambda: plan_handover(self.folder, wishes, self.contents, harmless))

    async def _carry_out(self, started: DeliveryStarted, record: Record) -> Delivered:
        await Workspace(self.folder).check()  # before anything is recorded
        for digest in {
            one.sha256 for file in started.files for one in (file.before, file.after)
        } & self.contents.keys():
            await self.blobs.put(self.contents[digest])
        self.state = await record(started)
        return await self._write(started, record)

    async def _write(self, started: DeliveryStarted, record: Record) -> Delivered:
        def work() -> list[DeliveredFile]:
            harmless = self.scratch.manifest.secrets.harmless
            return [hand_over(self.folder, one, self.contents, harmless) for one in started.files]

        done = tuple(await in_thread(work))
        if started.undoes:
            await in_thread(lambda: self._remove_patch(started.undoes))
        patch, place = await self._patch([one for one in done if one.how == "conflict"])
        event = Delivered(
            number=started.number,
            tree=started.tree,
            files=done,
            undoes=started.undoes,
            patch=place,
            patch_sha256=sha256(patch).hexdigest() if patch else "",
            unproven=started.unproven,
        )
        self.state = await record(event)
        await move_base(self.state, self.scratch, self.blobs)
        return event

    async def check_folder(self) -> None:
        """Raise BadUsage if the folder that the chat works on is gone; a new one need not be there yet."""
        if self.scratch.manifest.entries and not await in_thread(self.folder.is_dir):
            raise BadUsage(f"{self.folder} is not there any more", "put the folder back to its place")

    async def _patch(self, conflicts: list[DeliveredFile]) -> tuple[bytes, str]:
        """Write a patch with the changes that could not be merged; nothing if there is none."""
        if not conflicts:
            return b"", ""
        bases = {one.path: self._base(one.path) for one in conflicts}
        patch = diff_of([(bases[one.path], one.after) for one in conflicts], self.contents).encode()
        name = await in_thread(lambda: self._patch_name(sha256(patch).hexdigest()))
        await in_thread(lambda: Workspace(self.folder).write(name, patch))
        return patch, str(self.folder / name)

    def _patch_name(self, digest: str) -> str:
        """The first name that is free, or has a patch of ours: a file of the person's is not replaced."""
        ours = {
            digest,
            *(one.patch_sha256 for one in (self.state.base.deliveries if self.state.base else ())),
        }
        names = (f"septet-{self.state.chat}{tail}.patch" for tail in chain([""], map("-{}".format, count(2))))
        free = (
            name
            for name in names
            if not os.path.lexists(self.folder / name) or Workspace(self.folder).digest(name) in ours - {""}
        )
        return next(free)


def without_base_repeats(state: State) -> State:
    """The base of a checked copy is the folder with the person's edits: a test that these break is not unstable."""
    runs = [
        run for run in state.work.runs if not (run.purpose == "tests again" and run.about.startswith("base"))
    ]
    return replace(state, work=replace(state.work, runs=tuple(runs)))


def check_paths(only: Collection[str], wishes: Sequence[PlannedChange]) -> None:
    known = [wish.after.path for wish in wishes]
    for path in only:
        if path not in known:
            raise BadUsage(f"'{path}' is not to be delivered", f"name one of {', '.join(known)}")


def newest_delivery(state: State) -> Delivered | None:
    """The newest delivery that was not undone; one that only wrote a patch goes together with the one before it."""
    done = state.base.deliveries if state.base else ()
    undone = {number for one in done if one.undoes for number in range(one.undoes, one.number)}
    left = [one for one in done if not (one.undoes or one.branch) and one.number not in undone]
    changing = [one for one in left if any(file.how != "conflict" for file in one.files)]
    return (changing or left or [None])[-1]


def delivered_changes(state: State) -> Mapping[str, tuple[FileState, FileState]]:
    """The state of each file after all deliveries."""
    changes: dict[str, tuple[FileState, FileState]] = {}
    for delivery in state.base.deliveries if state.base else ():
        for one in delivery.files:
            if one.how != "conflict" and not delivery.branch:
                first = changes[one.path][0] if one.path in changes else one.before
                changes[one.path] = (first, one.after)
    return changes


async def deliver_to_branch(delivery: Delivery, name: str, message: str, record: Record) -> Delivered:
    """Commit to a new branch; neither the files nor the index of the person's checkout are changed."""
    await delivery.check_folder()
    state, wishes = delivery.state, await delivery.wishes()
    survey = state.base.survey if state.base else None
    top = repository_of(delivery.folder)
    if survey is None or top is None or not survey.commit:
        raise BadUsage(f"{delivery.folder} has no commit to branch from", f"septet deliver {state.chat}")
    if not wishes:
        raise BadUsage(f"'{state.chat}' has nothing to deliver", f"septet diff {state.chat}")
    prefix = delivery.folder.resolve().relative_to(top)
    files = {
        str(prefix / wish.after.path): (wish.after, delivery.contents.get(wish.after.sha256, b""))
        for wish in wishes
    }
    done = state.base.deliveries if state.base else ()
    known = {one.commit for one in done}
    commit = await in_thread(lambda: commit_to_branch(top, name, survey.commit, message, files, known))
    changed = tuple(DeliveredFile(path=one.after.path, before=one.base, after=one.after) for one in wishes)
    tree = state.work.version.tree if state.work.version else ""
    event = Delivered(number=1 + len(done), tree=tree, files=changed, branch=name, commit=commit)
    await record(event)
    return event
