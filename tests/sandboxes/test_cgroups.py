"""Control groups: where one may be made, and that one holds."""

import os
import subprocess
from pathlib import Path

import pytest

from septet.domain.runs import MEBIBYTE, Limits
from septet.sandboxes.cgroups import make_control_group, parents, remove_stale_groups
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
