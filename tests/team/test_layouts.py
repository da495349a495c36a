"""What shall be on disk, and what may be taken away, as the log tells it."""

from hashlib import sha256

from msgspec.structs import replace
from team.states import chat, planned

from septet.domain.events import (
    BaseSurveyed,
    Event,
    PlanProposed,
    RunFinished,
    SnapshotTaken,
    TurnOpened,
    VersionWritten,
)
from septet.domain.files import FileChange, FileRef, WorkspaceDelta, tree_of
from septet.domain.plans import PictureExists, Plan, Requirement
from septet.domain.runs import RunResult
from septet.domain.state import State
from septet.team.layouts import (
    deleted_after,
    first_snapshot,
    is_foreign,
    is_made_by_run,
    layout_of,
    products_of,
    workspace_delta,
)


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def version(number: int, texts: dict[str, str], *, found: bool = False) -> VersionWritten:
    files = tuple(FileRef(path=path, sha256=digest(text), size=len(text)) for path, text in texts.items())
    return VersionWritten(number=number, files=files, tree=tree_of(files), found=found)


def run(number: int, *changes: FileChange, others: tuple[str, ...] = ()) -> RunFinished:
    result = RunResult(exit_code=0, changes=changes, others=others)
    return RunFinished(id=f"v{number} run", purpose="run", command="x", tree="", result=result)


def change(path: str, kind: str, text: str = "") -> FileChange:
    sha = digest(text) if text else ""
    return FileChange(
        path=path, kind="new" if kind == "new" else "changed" if kind == "changed" else "deleted", sha256=sha
    )


def after(*events: Event) -> State:
    return chat([*planned(), TurnOpened(speaker="coder"), *events])


def test_only_what_runs_created_is_swept() -> None:
    state = after(
        version(1, {"a.py": "1"}),
        run(1, change("out.txt", "new", "o"), change("data.db", "changed", "d"), others=("folder",)),
        run(1, change("out.txt", "changed", "p")),
        version(2, {"a.py": "2"}),
    )
    assert layout_of(state, sweep=True).removable == {"out.txt": (digest("p"),), "folder": ("",)}
    assert layout_of(state).removable == {}
    assert is_made_by_run(state, "out.txt", digest("p"))
    assert not is_made_by_run(state, "out.txt", digest("the person's"))
    assert not is_made_by_run(state, "data.db", digest("d"))


def test_what_a_run_deletes_is_no_longer_its_own() -> None:
    state = after(
        version(1, {"a.py": "1"}),
        run(1, change("out.txt", "new", "o")),
        run(1, change("out.txt", "deleted")),
        run(1, change("out.txt", "changed", "mine")),
        version(2, {"a.py": "2"}),
    )
    assert layout_of(state, sweep=True).removable == {}


def test_what_the_team_deletes_goes_and_what_the_person_takes_away_may_come_back() -> None:
    both = {"a.py": "1", "b.py": "1"}
    by_team = after(version(1, both), version(2, {"a.py": "1"}))
    assert set(layout_of(by_team).removable) == {"b.py"}
    by_person = after(version(1, both), version(2, {"a.py": "1"}, found=True))
    assert layout_of(by_person).removable == {}


def test_a_version_may_be_on_disk_or_not_until_it_ran() -> None:
    state = after(version(1, {"a.py": "1"}), run(1), version(2, {"a.py": "2"}))
    assert not is_foreign(state, "a.py", digest("1"))
    assert not is_foreign(state, "a.py", digest("2"))
    assert is_foreign(state, "a.py", digest("mine"))
    ran = after(version(1, {"a.py": "1"}), run(1), version(2, {"a.py": "2"}), run(2))
    assert is_foreign(ran, "a.py", digest("1"))  # the person has put it back


def test_what_a_run_made_of_a_file_of_the_version_is_nobodys_edit() -> None:
    state = after(version(1, {"n.txt": "0"}), run(1, change("n.txt", "changed", "1")), run(1))
    assert not is_foreign(state, "n.txt", digest("1"))
    assert is_foreign(state, "n.txt", digest("2"))


def test_a_change_of_a_base_says_what_is_left_of_older_versions_and_of_their_runs() -> None:
    assert workspace_delta(chat([])) == WorkspaceDelta()
    second = replace(version(2, {"a.py": "2", "b.py": "1"}), deleted=("gone.py",))
    state = after(
        version(1, {"a.py": "1", "old.py": "1", "gone.py": "1"}),
        run(1, change("out.txt", "new", "o")),
        second,
    )
    assert workspace_delta(state) == WorkspaceDelta(
        files=second.files, deleted=("gone.py",), leftovers=("old.py",)
    )
    assert workspace_delta(state, sweep=True).leftovers == ("old.py", "out.txt")


def test_what_was_deleted_from_a_base_stays_deleted_until_it_is_written_again() -> None:
    survey = BaseSurveyed(kind="git", root="/p")
    kept = version(1, {"a.py": "1"}).files
    assert deleted_after(chat([]), kept, ["x.py"]) == ()
    begun = chat([survey])
    assert deleted_after(begun, kept, ["x.py", "a.py"]) == ("x.py",)
    later = chat([survey, replace(version(1, {}), deleted=("y.py", "a.py"))])
    assert deleted_after(later, kept, ["x.py"]) == ("x.py", "y.py")


def test_the_first_snapshot_is_that_of_the_beginning() -> None:
    first, second = (SnapshotTaken(number=number, manifest="m", entries=0) for number in (1, 2))
    assert first_snapshot(chat([first, second])) == first
    assert first_snapshot(chat([])) is None


def test_what_checks_leave_is_no_product_unless_the_plan_names_it() -> None:
    plan = Plan(items=(Requirement(id="P1", text="drawn", check=PictureExists(path="clock.png")),))
    made = [change(path, "new", path) for path in ("scratch.db", "clock.png")]
    state = after(
        PlanProposed(plan=plan),
        version(1, {"a.py": "a"}),
        run(1, change("report.txt", "new", "by the run line")),
        replace(run(1, *made), purpose="check", about="P1"),
    )
    assert set(products_of(state)) == {"report.txt", "clock.png"}
