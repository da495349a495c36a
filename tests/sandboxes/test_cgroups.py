"""Control groups: where one may be made, and that one holds."""

import os
import subprocess
from pathlib import Path

import pytest

from septet.domain.runs import MEBIBYTE, Limits
from septet.errors import SandboxFailed
from septet.sandboxes import cgroups
from septet.sandboxes.cgroups import ControlGroup, make_control_group, parents, remove_stale_groups
from septet.sandboxes.limits import shell_command

V2 = "30 23 0:26 / {place} rw,nosuid - cgroup2 cgroup2 rw\n"
V1 = "31 23 0:27 / {place}/pids rw - cgroup cgroup rw,pids\n32 23 0:28 / {place}/mem rw - cgroup cgroup rw,memory\n"


def delegated(root: Path, controllers: str) -> Path:
    """A version 2 tree in which our group is /user/session."""
    (root / "user" / "session").mkdir(parents=True)
    (root / "user" / "cgroup.subtree_control").write_text(controllers)
    return root


def test_version_2_groups_are_made_beside_our_own_where_both_controllers_are_handed_down(
    tmp_path: Path,
) -> None:
    root = delegated(tmp_path, "cpu memory pids\n")
    assert list(parents("0::/user/session\n", V2.format(place=root))) == [root / "user"]


@pytest.mark.parametrize("controllers", ["", "pids\n", "cpu io\n"])
def test_version_2_without_the_controllers_is_left_alone(tmp_path: Path, controllers: str) -> None:
    root = delegated(tmp_path, controllers)
    assert list(parents("0::/user/session\n", V2.format(place=root))) == []
    assert list(parents("0::/\n", V2.format(place=root))) == []


def test_version_1_groups_are_made_within_our_own(tmp_path: Path) -> None:
    memberships = "8:pids:/a\n4:memory:/b/c\n2:cpuacct:/\n0::/\n"
    found = list(parents(memberships, V1.format(place=tmp_path)))
    assert found == [tmp_path / "pids" / "a", tmp_path / "mem" / "b" / "c"]


def test_no_control_groups_are_no_error() -> None:
    assert list(parents("", "")) == []
    assert list(parents("0::/user\n", "25 30 0:23 / /proc rw - proc proc rw\n")) == []


def test_a_cage_holds_and_names_the_limit_that_was_met() -> None:
    with make_control_group(Limits(processes=5, memory=64 * MEBIBYTE)) as cage:
        if not cage.counts_processes:
            pytest.skip("no control group may be made here")
        assert cage.limit_hit() is None
        script = "for i in $(seq 20); do sleep 60 & done 2>/dev/null; true"
        subprocess.run(
            shell_command(cage.enter_script(), ["sh", "-c", script]), stderr=subprocess.DEVNULL, check=False
        )
        assert cage.limit_hit() == "processes"
        folders = cage.folders
    assert not [folder for folder in folders if folder.exists()]


def test_whoever_is_inside_ends_with_the_cage() -> None:
    with make_control_group(Limits()) as cage:
        if not cage.folders:
            pytest.skip("no control group may be made here")
        inside = subprocess.Popen(shell_command(cage.enter_script(), ["sleep", "600"]))
        while str(inside.pid) not in (cage.folders[-1] / "cgroup.procs").read_text().split():
            os.sched_yield()
    assert inside.wait() == -9


def test_groups_of_a_killed_septet_are_swept_away_and_those_of_a_living_one_are_not(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    for name in (f"septet-{gone.pid}-1", f"septet-{os.getpid()}-1", "other"):
        (tmp_path / name).mkdir()
    remove_stale_groups(tmp_path)
    assert {folder.name for folder in tmp_path.iterdir()} == {f"septet-{os.getpid()}-1", "other"}


def test_a_group_that_is_older_than_the_process_of_its_number_is_swept_away(tmp_path: Path) -> None:
    folder = tmp_path / f"septet-{os.getpid()}-1"
    folder.mkdir()
    os.utime(folder, (0, 0))  # pids are used again
    remove_stale_groups(tmp_path)
    assert not folder.exists()


def folder_with(root: Path, name: str, **files: str) -> Path:
    folder = root / name
    folder.mkdir(exist_ok=True)
    for file, text in files.items():
        (folder / file.replace("__", ".")).write_text(text)
    return folder


def test_a_group_takes_the_limits_that_it_knows_or_says_so(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "g", pids__max="max", memory__max="max", memory__stat="")
    group = ControlGroup((folder,))
    group.limit(Limits(memory=5, processes=7))
    assert ((folder / "pids.max").read_text(), (folder / "memory.max").read_text()) == ("15", "5")
    assert sorted(path.name for path in folder.iterdir()) == ["memory.max", "memory.stat", "pids.max"]
    assert (group.counts_processes, group.counts_memory) == (True, True)
    assert (ControlGroup().counts_processes, ControlGroup().counts_memory) == (False, False)
    pids = ControlGroup((folder_with(tmp_path, "pids", pids__max="max"),))
    assert (pids.counts_processes, pids.counts_memory) == (True, False)
    (folder / "pids.max").unlink()
    (folder / "pids.max").mkdir()
    with pytest.raises(SandboxFailed, match="the control group g accepts no limits"):
        group.limit(Limits())


def test_a_shell_enters_every_group_or_ends(tmp_path: Path) -> None:
    group = ControlGroup((tmp_path / "a b", tmp_path / "c"))
    assert group.enter_script() == (
        f"echo $$ >'{tmp_path}/a b/cgroup.procs' || exit 125;echo $$ >{tmp_path}/c/cgroup.procs || exit 125;"
    )
    assert ControlGroup().enter_script() == ""


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, None),
        ({"pids__events": "max 0\n"}, None),
        ({"pids__events": "low 1\nmax 2\n"}, "processes"),
        ({"memory__events": "oom 3\noom_kill 0\noom_group_kill 1\n"}, None),
        ({"memory__events": "oom 3\noom_kill 1\n"}, "memory"),
        ({"memory__oom_control": "under_oom 0\noom_kill 1\n"}, "memory"),
        ({"memory__oom_control": "oom_kill_disable 1\nunder_oom 1\n"}, None),
    ],
)
def test_the_limit_that_a_group_met_is_read_off_its_events(
    tmp_path: Path, files: dict[str, str], limit: str | None
) -> None:
    other = folder_with(tmp_path, "other")
    assert ControlGroup((other, folder_with(tmp_path, "g", **files))).limit_hit() == limit


def test_the_groups_of_a_process_are_found_where_they_are_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts, own = tmp_path / "mounts", tmp_path / "none"
    mounts.write_text(V2.format(place=tmp_path / "v2"))
    monkeypatch.setattr(cgroups, "_MOUNTS", mounts)
    memberships = "1:name=x:/y\n0::/a/b\n"

    def read(path: Path) -> str:
        if path.name == "cgroup":  # it stands in /proc
            return memberships
        return path.read_text() if path.exists() else ""

    monkeypatch.setattr(cgroups, "_read", read)
    assert cgroups.control_group_of(4711).folders == (tmp_path / "v2" / "a" / "b",)
    memberships = "0::/\n"
    assert cgroups.control_group_of(4711).folders == ()
    monkeypatch.setattr(cgroups, "_MOUNTS", own)
    assert cgroups.control_group_of(4711).folders == ()


def test_a_group_is_made_in_each_place_that_takes_it_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(cgroups, "_writable_parents", lambda: (tmp_path, tmp_path / "file"))
    with make_control_group(Limits()) as group, make_control_group() as another:
        (first,), (second,) = group.folders, another.folders
        assert first.parent == second.parent == tmp_path
        assert first != second
        assert first.name.startswith(f"septet-{os.getpid()}-")
        assert first.is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
