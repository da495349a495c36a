"""Decides which files the workspace must hold for the newest version, and which paths the team may write."""

from collections.abc import Iterable

from septet.domain.events import SnapshotTaken
from septet.domain.files import FileRef, Layout, WorkspaceDelta, is_expected
from septet.domain.plans import FileExists, PictureExists
from septet.domain.state import State


def layout_of(state: State, *, sweep: bool = False, mirror: bool = False) -> Layout:
    """The newest version without files of older versions and, if `sweep`, without what their runs created.

    A `mirror` is a folder of Septet's own: it may be out of date, and everything in it may be replaced.
    """
    version = state.work.version
    if version is None:
        return Layout(replaceable=None if mirror else state.work.expected_digests)
    older = {file.path: file.sha256 for one in state.work.versions for file in one.files}
    deleted = older if mirror else deleted_by_team(state)
    left = {
        path: (digest, *filter(None, state.work.expected_digests.get(path, ())))
        for path, digest in deleted.items()
    }
    stale = {path: (*left.get(path, ()), digest) for path, digest in state.work.stale_artefacts.items()}
    gone = {**left, **stale} if sweep else left
    return Layout(
        files=version.files, removable=gone, replaceable=None if mirror else state.work.expected_digests
    )


def workspace_delta(state: State, *, sweep: bool = False) -> WorkspaceDelta:
    """The newest version's changes to the base, without files of older versions and, if `sweep`, of their runs."""
    version = state.work.version
    if version is None:
        return WorkspaceDelta()
    now = {*(file.path for file in version.files), *version.deleted}
    older = {file.path for one in state.work.versions for file in one.files}
    left = {*older, *(state.work.stale_artefacts if sweep else ())}
    return WorkspaceDelta(files=version.files, deleted=version.deleted, leftovers=tuple(sorted(left - now)))


def deleted_after(state: State, files: Iterable[FileRef], gone: Iterable[str] = ()) -> tuple[str, ...]:
    """The paths that a version with these files deletes from its base; empty if there is no base."""
    if state.base is None:
        return ()
    before = state.work.version.deleted if state.work.version else ()
    return tuple(sorted({*before, *gone} - {file.path for file in files}))


def deleted_by_team(state: State) -> dict[str, str]:
    """Files that the team deleted, with their digests. Files that the person deleted are not listed."""
    gone: dict[str, str] = {}
    before: dict[str, str] = {}
    for version in state.work.versions:
        now = {file.path: file.sha256 for file in version.files}
        gone |= {path: digest for path, digest in before.items() if not version.found}
        gone = {path: digest for path, digest in gone.items() if path not in now}
        before = now
    return gone


def first_snapshot(state: State) -> SnapshotTaken | None:
    return state.work.snapshots[0] if state.work.snapshots else None


def is_made_by_run(state: State, path: str, digest: str) -> bool:
    """Whether a run created the content at the path."""
    created = path in state.work.created_paths and state.work.artefacts.get(path, "") in ("", digest)
    return created or state.work.stale_artefacts.get(path) in ("", digest)


def is_foreign(state: State, path: str, digest: str) -> bool:
    """Whether the content at the path is the person's: the team does not expect it and no run created it."""
    known = is_expected(state.work.expected_digests, path, digest) or is_made_by_run(state, path, digest)
    return bool(digest) and not known


def made_by_run(state: State) -> dict[str, str]:
    """Digests of the files that the plan's run created or changed, without the version's own files."""
    own = {file.path for file in state.work.files}
    runs = [run for run in state.work.runs if run.purpose == "run"]
    changes = [
        one for run in runs for one in run.result.changes if one.kind != "deleted" and one.path not in own
    ]
    return {one.path: one.sha256 for one in changes}


def traces_of(state: State) -> dict[str, str]:
    """Paths that tests and checks created and that still exist, with digests; folders and links have none."""
    found: dict[str, str] = {}
    for run in state.work.runs:
        if run.purpose in ("tests", "check"):
            found |= {one.path: one.sha256 for one in run.result.changes if one.kind == "new"}
            found |= dict.fromkeys(run.result.others, "")
            for one in run.result.changes:
                if one.kind == "deleted":
                    found.pop(one.path, None)
    return {path: digest for path, digest in found.items() if path not in made_by_run(state)}


def named_products(state: State) -> frozenset[str]:
    """Files that the plan says are to be made."""
    checks = (item.check for item in state.plan.items)
    return frozenset(check.path for check in checks if isinstance(check, FileExists | PictureExists))


def products_of(state: State) -> dict[str, str]:
    """What the newest version's runs made and is to stay: by the plan's run, or named by the plan."""
    left = traces_of(state).keys() - named_products(state)
    return {path: digest for path, digest in state.work.artefacts.items() if path not in left}
