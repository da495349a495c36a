"""Files of the person's: what may be written over, what a refusal shows of them, and what was found in the folder."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace
from team.states import STARTED, chat, planned

from septet.agents import protection
from septet.agents.protection import (
    LONGEST_SHOWN,
    MOST_SHOWN,
    added_paths,
    check_overwrite,
    events_before_turn,
    fenced_block,
    has_begun,
    refuse_overwrite,
    version_found,
    version_from_folder,
    with_folder_protection,
)
from septet.agents.run_context import MOST_BYTES, MOST_KEPT, RunContext
from septet.domain.events import (
    Event,
    PersonSpoke,
    ReplyRefused,
    RunFinished,
    SnapshotTaken,
    ToolCalled,
    TurnOpened,
    VersionWritten,
)
from septet.domain.files import FileChange, FileRef, tree_of
from septet.domain.runs import RunResult
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.runtime.bus import MemoryBus
from septet.sandboxes.rungs.unsafe import UnsafeLocal
from septet.stores.memory import MemoryBlobs
from septet.workspace.files import Workspace

pytestmark = pytest.mark.anyio

CODER = RoleSpec(name="coder", role="coder")


def context(folder: Path, mirror: bool = False) -> RunContext:
    return RunContext(Workspace(folder), UnsafeLocal(), MemoryBlobs(), MemoryBus(), mirror=mirror)


async def stored(run_context: RunContext, path: str, text: str) -> FileRef:
    content = text.encode()
    return FileRef(path=path, sha256=await run_context.blobs.put(content), size=len(content))


def written(number: int, *files: FileRef, found: bool = False) -> VersionWritten:
    return VersionWritten(number=number, files=files, tree=tree_of(files), found=found)


def state_with(*events: Event) -> State:
    return chat([*planned(), TurnOpened(speaker="coder"), *events])


async def test_a_new_file_may_be_written_and_one_of_the_persons_is_shown_first(tmp_path: Path) -> None:
    run_context = context(tmp_path)
    (tmp_path / "mine.py").write_text("x = 1\n")
    state = state_with()
    assert await check_overwrite(state, [], run_context) is None
    assert await check_overwrite(state, ["new.py", "a/b.py"], run_context) is None
    refused = await check_overwrite(state, ["new.py", "mine.py"], run_context)
    assert refused is not None
    assert refused.reason == (
        "'mine.py': in the folder already, unknown to you; nothing was written. "
        "Read, and send again whole what shall change.\n\n``` mine.py\nx = 1\n```"
    )
    digest = sha256(b"x = 1\n").hexdigest()
    assert refused.shown_files == (FileRef(path="mine.py", sha256=digest, size=6),)
    assert await run_context.blobs.get(digest) == b"x = 1\n"
    assert await check_overwrite(state, ["mine.py"], context(tmp_path, mirror=True)) is None


async def test_a_file_that_the_team_wrote_may_be_written_again(tmp_path: Path) -> None:
    run_context = context(tmp_path)
    (tmp_path / "ours.py").write_text("x = 1\n")
    state = state_with(written(1, await stored(run_context, "ours.py", "x = 1\n")))
    assert await check_overwrite(state, ["ours.py"], run_context) is None


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../out.py", "'../out.py'"),
        ("folder", "'folder' is a folder"),
        ("mine.py/deeper.py", "'mine.py/deeper.py'"),
        ("link.py", "'link.py'"),
    ],
)
async def test_what_stands_in_the_way_is_named(tmp_path: Path, path: str, reason: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "mine.py").write_text("x = 1\n")
    (tmp_path / "link.py").symlink_to("mine.py")
    refused = await check_overwrite(state_with(), [path], context(tmp_path))
    assert refused is not None
    assert refused.reason.startswith(reason)
    assert refused.shown_files == ()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".env", b"A=1\n"),
        ("data.bin", b"\0\1"),
        ("long.txt", b"x" * (LONGEST_SHOWN + 1)),
        ("ignored.txt", b"x"),
        ("ignored/a.txt", b"x"),
    ],
)
async def test_a_file_that_may_not_be_shown_is_not_replaced(
    tmp_path: Path, name: str, content: bytes
) -> None:
    await anyio.run_process(["git", "init", "-q", str(tmp_path)])
    (tmp_path / ".gitignore").write_text("ignored*\n")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(content)
    (tmp_path / "mine.py").write_text("x = 1\n")
    refused = await check_overwrite(state_with(), ["mine.py", name], context(tmp_path))
    assert refused is not None
    assert refused.reason == (
        f"'{name}': in the folder already, and may not be shown or replaced; choose another name"
    )
    assert refused.shown_files == ()


async def test_a_refusal_shows_as_many_files_as_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protection, "MOST_SHOWN", 10)
    for name, size in (("a.txt", 6), ("b.txt", 4), ("c.txt", 1)):
        (tmp_path / name).write_text("x" * size)
    refused = await check_overwrite(state_with(), ["a.txt", "b.txt", "c.txt"], context(tmp_path))
    assert refused is not None
    assert refused.reason.startswith("'a.txt', 'b.txt', 'c.txt': in the folder already")
    assert [one.path for one in refused.shown_files] == ["a.txt", "b.txt"]
    assert (LONGEST_SHOWN, MOST_SHOWN) == (65_536, 131_072)


async def test_a_file_of_the_longest_length_is_shown(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_bytes(b"x" * LONGEST_SHOWN)
    refused = await check_overwrite(state_with(), ["long.txt"], context(tmp_path))
    assert refused is not None
    assert [one.size for one in refused.shown_files] == [LONGEST_SHOWN]


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("x\n", "``` a.md\nx\n```"),
        ("x", "``` a.md\nx\n```"),
        ("``` py\nx\n```\n", "```` a.md\n``` py\nx\n```\n````"),
        ("`````", "`````` a.md\n`````\n``````"),
        ("``x``\n", "``` a.md\n``x``\n```"),
    ],
)
def test_a_block_is_fenced_by_what_is_not_in_it(text: str, block: str) -> None:
    assert fenced_block("a.md", text) == block


async def refused_by(folder: Path, last: Event | None) -> Event | None:
    async def agent(state: State, record: object) -> Event | None:
        return last

    async def record(event: Event) -> State:
        raise AssertionError(event)

    return await refuse_overwrite(CODER, agent, context(folder))(state_with(), record)


async def test_only_a_version_of_the_coders_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n")
    file = FileRef(path="mine.py", sha256="0" * 64, size=1)
    refused = await refused_by(tmp_path, written(1, file))
    assert isinstance(refused, ReplyRefused)
    assert (refused.role, [one.path for one in refused.shown]) == ("coder", ["mine.py"])
    for other in (None, written(1, file, found=True), PersonSpoke(text="hi"), written(1)):
        assert await refused_by(tmp_path, other) == other


def test_the_paths_that_a_version_adds() -> None:
    old, new = (FileRef(path=path, sha256="0" * 64, size=1) for path in ("old.py", "new.py"))
    assert added_paths(state_with(written(1, old)), written(2, old, new)) == ["new.py"]


async def test_what_was_changed_in_the_folder_is_a_version_of_its_own(tmp_path: Path) -> None:
    run_context = context(tmp_path)
    texts = {"a.py": "a\n", "b.py": "b\n", "c.py": "c\n", "d.bin": "d", "e.txt": "e"}
    files = [await stored(run_context, path, text) for path, text in texts.items()]
    ran = RunFinished(id="v1 run", purpose="run", command="true", tree="", result=RunResult(exit_code=0))
    state = state_with(written(1, *files), TurnOpened(speaker="runner"), ran)  # so it was all there
    assert await version_found(state, run_context) is None, "an empty folder is filled again"
    for path, text in texts.items():
        (tmp_path / path).write_text(text)
    assert await version_found(state, run_context) is None, "as the team left it"
    (tmp_path / "b.py").write_text("mine\n")
    (tmp_path / "c.py").unlink()
    (tmp_path / "d.bin").write_bytes(b"\0\1")
    (tmp_path / "e.txt").write_text("token = ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8\n")
    found = await version_found(state, run_context)
    assert found is not None
    mine = sha256(b"mine\n").hexdigest()
    kept = (files[0], FileRef(path="b.py", sha256=mine, size=5))
    assert found == VersionWritten(
        number=2, files=kept, tree=tree_of(kept), note="as found in the workspace", found=True
    )
    assert await run_context.blobs.get(mine) == b"mine\n"
    assert version_from_folder(state, reversed(files)) is None


async def test_before_a_turn_the_folder_is_looked_at_once(tmp_path: Path) -> None:
    run_context = context(tmp_path)
    file = await stored(run_context, "a.py", "a\n")
    (tmp_path / "a.py").write_text("mine\n")
    begun = ToolCalled(id="1.1.1", by="coder", name="look", arguments="{}", call="c")
    state = state_with(written(1, file))
    assert has_begun(state)
    fresh = chat([*planned(), TurnOpened(speaker="coder"), written(1, file), TurnOpened(speaker="coder")])
    assert not has_begun(fresh)
    assert [type(event) for event in await events_before_turn(fresh, run_context)] == [VersionWritten]
    assert await events_before_turn(fresh, context(tmp_path, mirror=True)) == []
    assert await events_before_turn(chat([*planned(), TurnOpened(speaker="coder"), begun]), run_context) == []
    assert has_begun(chat(planned()))


@pytest.mark.parametrize("runs", [True, False])
async def test_a_member_that_runs_programs_goes_on_with_what_was_found(tmp_path: Path, runs: bool) -> None:
    run_context = context(tmp_path)
    file = await stored(run_context, "a.py", "a\n")
    (tmp_path / "a.py").write_text("mine\n")
    events: list[Event] = [
        *planned(),
        TurnOpened(speaker="coder"),
        written(1, file),
        TurnOpened(speaker="runner"),
    ]
    seen: list[int] = []

    async def record(event: Event) -> State:
        events.append(event)
        return chat(events)

    async def agent(state: State, record: object) -> Event | None:
        seen.append(len(state.work.versions))
        return None

    last = await with_folder_protection(agent, run_context, runs=runs)(chat(events), record)
    if runs:
        assert (last, seen) == (None, [2])
    else:
        assert isinstance(last, VersionWritten)
        assert (seen, len(events)) == ([], len(planned()) + 3)


def made(path: str, content: bytes = b"x", kind: str = "new", digest: str = "") -> FileChange:
    known = digest or sha256(content).hexdigest()
    return FileChange(path=path, kind=kind, size=len(content), sha256=known)  # pyright: ignore[reportArgumentType]  # one of the kinds


async def kept(folder: Path, changes: Sequence[FileChange], hidden: set[str]) -> list[str]:
    found = await context(folder).keep_changes(tuple(changes), hidden)
    assert [one.path for one in found] == [one.path for one in changes]
    return [one.path for one in found if one.sha256]


async def test_what_a_run_made_is_kept_unless_it_is_hidden_secret_or_has_changed_since(
    tmp_path: Path,
) -> None:
    for name in ("a.txt", "b.txt", "c.txt", "log.txt", ".env"):
        (tmp_path / name).write_bytes(b"x")
    changes = [
        made("a.txt"),
        made("b.txt", digest="0" * 64),
        made(".env"),
        made("log.txt", kind="changed"),
        made("c.txt", kind="changed"),
        made("gone.txt"),
        FileChange(path="large.bin", kind="new", size=9),
    ]
    assert await kept(tmp_path, changes, {"log.txt"}) == ["a.txt", "c.txt"]
    assert await kept(tmp_path, [made("log.txt")], {"log.txt"}) == ["log.txt"], "the run made it"


async def test_so_many_files_and_bytes_are_kept_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("septet.agents.run_context.MOST_KEPT", 2)
    monkeypatch.setattr("septet.agents.run_context.MOST_BYTES", 5)
    sizes = {"a": 3, "b": 3, "c": 2, "d": 0}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(b"x" * size)
    assert await kept(tmp_path, [made(name, b"x" * size) for name, size in sizes.items()], set()) == [
        "a",
        "c",
    ]
    assert await kept(tmp_path, [made("c", b"xx"), made("a", b"xxx")], set()) == ["c", "a"]
    assert (MOST_KEPT > 2, MOST_BYTES > 5) == (True, True)


@pytest.mark.parametrize("existing", [True, False])
async def test_a_folder_in_use_is_kept_as_it_was_before_the_first_write_and_once(
    tmp_path: Path, existing: bool
) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n")
    run_context = context(tmp_path)
    begun = replace(STARTED, existing=existing)
    opened = TurnOpened(speaker="planner")
    first = await events_before_turn(chat([begun, opened]), run_context)
    assert [type(one) for one in first] == ([SnapshotTaken] if existing else [])
    for event in first:
        assert isinstance(event, SnapshotTaken)
        assert (event.number, event.note, event.entries) == (1, "before the first write", 1)
    assert await events_before_turn(chat([begun, *first, opened]), run_context) == []
    nothing = VersionWritten(number=1, files=(), tree="")
    assert await events_before_turn(chat([begun, nothing, opened]), run_context) == []
