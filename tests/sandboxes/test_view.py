"""What a program sees of the machine: its folder, what it may read, and nothing that it could change for others."""

import os
from pathlib import Path

import pytest

from septet.domain.runs import Job, Limits
from septet.errors import BadUsage
from septet.sandboxes import view
from septet.sandboxes.environment import HOME, environment, interpreter_folders, make_environment, search_path
from septet.sandboxes.users import SandboxUser
from septet.sandboxes.view import Mount


def job(workspace: Path, **fields: object) -> Job:
    return Job(command=("true",), workspace=str(workspace), **fields)  # pyright: ignore[reportArgumentType]  # fields of a job


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def pairs(arguments: list[str], option: str) -> list[tuple[str, str]]:
    return [(arguments[at + 1], arguments[at + 2]) for at, one in enumerate(arguments) if one == option]


def test_only_the_workspace_is_writable_and_the_root_is_closed_last(work: Path) -> None:
    (work / ".git").mkdir()
    arguments = view.bubblewrap_arguments(work, job(work, limits=Limits(memory=400)), SandboxUser())
    assert pairs(arguments, "--bind") == [(str(work), str(work))]
    read_only = pairs(arguments, "--ro-bind")
    assert (str(work / ".git"), str(work / ".git")) in read_only
    assert ("/proc/sys", "/proc/sys") in read_only
    assert arguments.index(str(work)) < arguments.index(str(work / ".git"))
    assert arguments[-4:] == ["--remount-ro", "/", "--chdir", str(work)]
    tmp = arguments.index("/tmp")
    assert arguments[tmp - 5 : tmp] == ["--perms", "1777", "--size", "100", "--tmpfs"]
    shm = arguments.index("/dev/shm")
    assert arguments[shm - 5 : shm] == ["--perms", "1777", "--size", "100", "--tmpfs"]
    assert arguments[arguments.index(HOME) - 3 : arguments.index(HOME) + 1] == [
        "--perms",
        "0777",
        "--dir",
        HOME,
    ]


def test_parents_of_mounts_are_made_unless_a_mount_or_the_system_has_them(work: Path) -> None:
    nested = work.parent / "lib" / "deep" / "file"
    nested.parent.mkdir(parents=True)
    nested.touch()
    (work / ".git").mkdir()
    readable = (str(work.parent / "lib"), str(nested), "/usr/lib")
    arguments = view.bubblewrap_arguments(work, job(work, readable=readable), SandboxUser())
    made = [
        arguments[at + 3] for at in range(len(arguments)) if arguments[at : at + 2] == ["--perms", "0755"]
    ]
    assert str(work.parent) in made
    assert {str(work), str(work.parent / "lib"), str(nested.parent)}.isdisjoint(made)
    assert {"/", "/tmp", "/dev", "/proc", "/usr", "/usr/lib"}.isdisjoint(made)
    assert made == sorted(made)


def test_the_kernels_files_are_hidden_from_root(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []
    for uid in (0, 1000):
        view._mount_arguments.cache_clear()  # pyright: ignore[reportPrivateUsage]  # it does not know the user
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        arguments = view.bubblewrap_arguments(work, job(work), SandboxUser())
        found.append(("/dev/null", "/proc/timer_list") in pairs(arguments, "--ro-bind"))
    view._mount_arguments.cache_clear()  # pyright: ignore[reportPrivateUsage]  # as above
    assert found == [Path("/proc/timer_list").exists(), False]


def test_a_copy_is_seen_at_the_folders_place_with_what_is_shared(work: Path, tmp_path: Path) -> None:
    person, setup = tmp_path / "person", tmp_path / "setup"
    for folder in (person / ".venv", setup / "node_modules", setup / ".venv"):
        folder.mkdir(parents=True)
    (person / "link").symlink_to("/etc")
    copied = job(
        work, mounted_at=str(person), shared=(".venv", "node_modules", "link", "none"), setup=str(setup)
    )
    assert [*view.shared_mounts(copied)] == [
        Mount(person / ".venv", source=person / ".venv"),
        Mount(person / "node_modules", source=setup / "node_modules"),
    ]
    arguments = view.bubblewrap_arguments(work, copied, SandboxUser())
    assert pairs(arguments, "--bind") == [(str(work), str(person))]
    assert arguments[-1] == str(person)
    assert view.source_paths(work, copied)[0] == work
    assert {person / ".venv", setup / "node_modules"} <= {*view.source_paths(work, copied)}
    without = job(work, mounted_at=str(person), shared=("node_modules",))
    assert view.shared_source(without, "node_modules") == person / "node_modules"


def test_what_may_be_read_is_seen_once_and_the_system_is_there_anyway(work: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    readable = (str(tmp_path / "data"), "/usr/share", str(tmp_path / "data"))
    paths = view.readable_paths(readable)
    assert paths.count(tmp_path / "data") == 1
    assert Path("/usr/share") not in paths
    mounts = view.mounts_for(work, readable)
    assert Mount(work, writable=True) in mounts
    assert Mount(tmp_path / "data") in mounts
    depths = [len(mount.path.parts) for mount in mounts]
    assert depths == sorted(depths)
    assert not [mount for mount in mounts if mount.writable and mount.path != work]


def test_a_repository_is_read_only_unless_it_is_a_link(work: Path) -> None:
    assert [*view.repository_mounts(work)] == []
    (work / ".git").symlink_to("/etc")
    assert [*view.repository_mounts(work)] == []
    (work / ".git").unlink()
    (work / ".git").write_text("gitdir: elsewhere")
    assert [*view.repository_mounts(work)] == [Mount(work / ".git")]


@pytest.mark.parametrize(
    ("path", "trouble"),
    [("/etc", "is too wide"), ("/nowhere", "is not a folder"), ("/etc/passwd", "is not a folder"),
     ("/tmp/" + "x" * 300, "cannot be used")],
)  # fmt: skip
def test_what_is_no_workspace_is_refused(path: str, trouble: str) -> None:
    with pytest.raises(BadUsage, match=trouble):
        view.check_workspace(path)


def test_a_workspace_is_known_by_its_real_path(work: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(work)
    assert view.check_workspace(str(tmp_path / "link")) == work.resolve()


def test_a_programs_variables_say_where_it_is_and_hide_the_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "x")
    found = environment({"MINE": "1", "LANG": "de_DE.UTF-8"}, home="/h", temporary="/t")
    assert (found["HOME"], found["TMPDIR"], found["MINE"], found["LANG"]) == ("/h", "/t", "1", "de_DE.UTF-8")
    assert "SECRET_KEY" not in found
    assert found["PATH"] == search_path()
    assert search_path([Path("/a"), Path("/b")]) == f"/a{os.pathsep}/b{os.pathsep}{search_path()}"


def test_an_environment_has_its_interpreter_under_its_names(tmp_path: Path) -> None:
    for _ in range(1):
        make_environment(tmp_path / "e", Path("/opt/py/bin/python3"), "3.12")
    assert (tmp_path / "e" / "pyvenv.cfg").read_text() == (
        "home = /opt/py/bin\ninclude-system-site-packages = false\nversion = 3.12\n"
    )
    names = sorted(path.name for path in (tmp_path / "e" / "bin").iterdir())
    assert names == ["python", "python3", "python3.12"]
    assert (tmp_path / "e" / "bin" / "python").readlink() == Path("/opt/py/bin/python3")
    assert (tmp_path / "e" / "lib" / "python3.12" / "site-packages").is_dir()


def test_no_folder_of_the_interpreter_is_within_another() -> None:
    folders = interpreter_folders()
    assert folders
    assert not [
        (one, other) for one in folders for other in folders if one != other and one.is_relative_to(other)
    ]
