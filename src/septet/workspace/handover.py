"""From the scratch into the person's folder, file by file: written, merged, or left alone where both sides disagree."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from septet.common.values import Value
from septet.domain.base import DeliveredFile, FileState
from septet.workspace.edits import diff_text
from septet.workspace.files import MAX_FILE_BYTES, Workspace, make_folder
from septet.workspace.listing import is_secret
from septet.workspace.merge import has_marks, merge_file
from septet.workspace.scratch import content_of, file_state, put_state

Contents = dict[str, bytes]
"""By their sha256."""


class Wish(Value):
    """What a file shall become, and what it was when that was decided.

    `base_after` is what the base's file becomes, where that is something else.
    """

    base: FileState
    after: FileState
    base_after: FileState | None = None


def plan_handover(folder: Path, wishes: Iterable[Wish], contents: Contents) -> list[DeliveredFile]:
    """What each file is and shall be. Merged contents, and those that will be replaced, are added to `contents`."""
    found = (plan_file(folder, wish, contents) for wish in wishes)
    return [one for one in found if one is not None]


def plan_file(folder: Path, wish: Wish, contents: Contents) -> DeliveredFile | None:
    """Nothing for a file that is right already."""
    path, after = wish.after.path, wish.after
    now = file_state(folder, path)
    if same(now, after) or same(wish.base, after):
        return None
    conflict = DeliveredFile(path=path, before=now, after=after, how="conflict")
    current = content_of(folder, now)
    link_goes = now.kind == "link" and not after.sha256
    blocked = now.size >= MAX_FILE_BYTES or (bool(Workspace(folder).obstacle(path)) and not link_goes)
    marked = bool(after.sha256) and has_marks(contents[after.sha256])
    if blocked or marked or (current is not None and is_secret(path, current)):
        return conflict
    contents.update({now.sha256: current} if current is not None else {})
    if same(now, wish.base):
        kept = replace(after, kind=now.kind) if now.sha256 and after.sha256 and now.kind != "link" else after
        return DeliveredFile(path=path, before=now, after=kept, base_after=wish.base_after)
    merged = merge_states(wish.base, now, after, contents)
    if merged is None:
        return conflict
    return DeliveredFile(
        path=path,
        before=now,
        after=merged,
        how="merged",
        base_before=wish.base,
        base_after=wish.base_after or after,
    )


def same(one: FileState, other: FileState) -> bool:
    """The same content, as a file or as a link."""
    return one.sha256 == other.sha256 and (one.kind == "link") == (other.kind == "link")


def merge_states(base: FileState, now: FileState, after: FileState, contents: Contents) -> FileState | None:
    """Both sides' changes of a file; None where they disagree, or there is no file on both sides."""
    if not (now.sha256 and after.sha256) or "link" in (base.kind, now.kind, after.kind):
        return None
    merge = merge_file(contents.get(base.sha256, b""), contents[now.sha256], contents[after.sha256])
    if not merge.clean or merge.content is None:
        return None
    state = replace(now, sha256=sha256(merge.content).hexdigest(), size=len(merge.content))
    contents[state.sha256] = merge.content
    return state


def hand_over(folder: Path, one: DeliveredFile, contents: Contents) -> DeliveredFile:
    """Write one file, in one move. Who is interrupted does it again; an edit made since the plan is merged or stays."""
    if one.how == "conflict" or same(file_state(folder, one.path), one.after):
        return one
    again = plan_file(folder, Wish(base=one.before, after=one.after, base_after=one.base_after), contents)
    if again is None or again.how == "conflict":
        return one if again is None else again
    make_folder(folder)
    put_state(Workspace(folder), again.after, contents.get(again.after.sha256, b""))
    if same(again.before, one.before):
        return replace(one, after=again.after)
    return replace(again, base_before=one.base_before or one.before)


def diff_of(wishes: Iterable[tuple[FileState, FileState]], contents: Mapping[str, bytes]) -> str:
    """A unified diff over all files; what is no text is only named."""
    return "".join(file_diff(before, after, contents) for before, after in wishes)


def file_diff(before: FileState, after: FileState, contents: Mapping[str, bytes]) -> str:
    texts = [text_for_diff(one, contents) for one in (before, after)]
    if any(one.sha256 and text is None for one, text in zip((before, after), texts, strict=True)):
        return f"Binary files a/{before.path} and b/{after.path} differ\n"
    return diff_text(after.path, texts[0], texts[1])


def text_for_diff(one: FileState, contents: Mapping[str, bytes]) -> str | None:
    content = contents.get(one.sha256)
    if content is None or b"\0" in content:
        return None
    return content.decode(errors="replace")
