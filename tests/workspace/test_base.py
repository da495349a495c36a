"""What a base holds is what git lists; what git ignores and what looks like a secret is in no survey."""

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from septet.domain.base import BaseEntry
from septet.domain.events import BaseSurveyed
from septet.stores.memory import MemoryBlobs
from septet.workspace.base import has_digest, look_through, read_manifest, survey_base

pytestmark = pytest.mark.anyio


def git(folder: Path, *words: str) -> str:
    names = {
        f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    run = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **names}, check=True, capture_output=True, text=True
    )
    return run.stdout.strip()


def commit_all(folder: Path) -> str:
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "as it was")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src" / "clock").mkdir(parents=True)
    (root / "src" / "clock" / "__init__.py").write_text("hands = 2\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "windows.txt").write_bytes(b"one\r\ntwo\r\n")
    (root / "picture.bin").write_bytes(bytes(range(256)))
    (root / "latin.txt").write_bytes("Käse\n".encode("latin-1"))
    (root / "link").symlink_to("run.sh")
    (root / ".gitignore").write_text("*.db\n.venv/\n")
    (root / "AGENTS.md").write_text("Use tabs.\n")
    (root / "CLAUDE.md").write_text("Use tabs.\n")
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (root / "key.pem").write_text("tracked\n")
    commit_all(root)
    (root / "people.db").write_text("precious")
    (root / ".env").write_text("TOKEN=1")
    return root


def surveyed(root: Path) -> tuple[BaseSurveyed, dict[str, BaseEntry]]:
    survey, manifest = look_through(root)
    return survey, dict(manifest.by_path())


def test_a_repository_is_listed_as_git_lists_it(project: Path) -> None:
    survey, entries = surveyed(project)
    tracked = set(git(project, "ls-files").splitlines())

    assert set(entries) == tracked
    assert (survey.kind, survey.commit) == ("git", git(project, "rev-parse", "HEAD"))
    assert survey.dirty == (".env",)
    assert survey.secrets == (".env", "key.pem")
    assert survey.ignored == 1
    assert [entries[path].kind for path in ("run.sh", "link", "windows.txt")] == ["program", "link", "file"]
    assert (survey.tests, survey.tests_source) == ("python -m pytest", "pyproject.toml")
    assert survey.conventions == "## AGENTS.md\nUse tabs."


def test_clean_files_have_gits_digest_and_others_their_own(project: Path) -> None:
    (project / "run.sh").write_text("#!/bin/sh\necho\n")
    (project / "new.txt").write_text("new")
    (project / "staged.txt").write_text("staged")
    (project / "windows.txt").unlink()
    git(project, "add", "staged.txt")
    survey, entries = surveyed(project)

    assert survey.dirty == (".env", "new.txt", "run.sh", "staged.txt", "windows.txt")
    assert "windows.txt" not in entries
    kinds = {path: entry.digest.startswith("git:") for path, entry in entries.items()}
    assert [path for path, clean in kinds.items() if not clean] == ["new.txt", "run.sh"]
    assert all(
        has_digest(entry.digest, (project / path).read_bytes())
        for path, entry in entries.items()
        if entry.kind != "link"
    )
    assert not has_digest(entries["new.txt"].digest, b"other")


def test_a_folder_of_a_repository_is_surveyed_by_itself(project: Path) -> None:
    survey, entries = surveyed(project / "src")

    assert set(entries) == {"clock/__init__.py"}
    assert survey.kind == "git"
    assert survey.dirty == ()


def test_repositories_within_are_somebody_elses(project: Path) -> None:
    (project / "nested").mkdir()
    (project / "nested" / "own.py").write_text("x = 1\n")
    commit_all(project / "nested")
    _, manifest = look_through(project)

    assert manifest.unlisted == ("nested", "people.db")
    assert not [entry for entry in manifest.entries if entry.path.startswith("nested")]


def test_a_worktree_has_its_own_commit(project: Path, tmp_path: Path) -> None:
    git(project, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    (tmp_path / "tree" / "run.sh").write_text("changed\n")
    survey, entries = surveyed(tmp_path / "tree")

    assert survey.commit == git(tmp_path / "tree", "rev-parse", "HEAD")
    assert survey.dirty == ("run.sh",)
    assert entries["latin.txt"].digest.startswith("git:")


def test_the_configuration_of_a_repository_runs_nothing(project: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    git(project, "config", "core.fsmonitor", str(trap))
    git(project, "config", "filter.trap.clean", str(trap))
    (project / ".gitattributes").write_text("* filter=trap\n")
    (project / "run.sh").write_text("touched\n")
    surveyed(project)

    assert not (tmp_path / "sprung").exists()


def test_without_git_the_folder_is_walked(tmp_path: Path) -> None:
    (tmp_path / "node_modules" / "x").mkdir(parents=True)
    (tmp_path / "node_modules" / "x" / "index.js").write_text("x")
    (tmp_path / "a.test.js").write_text("x")
    (tmp_path / "id_rsa").write_text("x")
    survey, manifest = look_through(tmp_path)

    assert [entry.path for entry in manifest.entries] == ["a.test.js"]
    assert (survey.kind, survey.secrets, survey.commit) == ("folder", ("id_rsa",), "")


def test_an_empty_folder_is_an_empty_base(tmp_path: Path) -> None:
    survey, entries = surveyed(tmp_path)

    assert (survey.kind, entries, survey.map) == ("empty", {}, "")


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"package.json": '{"scripts": {"test": "jest"}}'}, "npm test"),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\""}}'}, ""),
        ({"package.json": "[", "a.test.js": ""}, "node --test"),
        ({"go.mod": "module x\n"}, "go test ./..."),
        ({"Cargo.toml": ""}, "cargo test"),
        ({"Makefile": "all:\n\ttrue\ntest: all\n\ttrue\n"}, "make test"),
        ({"tests/test_a.py": ""}, "python -m pytest"),
        ({"readme.txt": "test:"}, ""),
    ],
)
def test_the_test_command_is_found(files: dict[str, str], command: str, tmp_path: Path) -> None:
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)

    assert surveyed(tmp_path)[0].tests == command


async def test_a_large_repository_makes_a_small_event(tmp_path: Path) -> None:
    for folder in range(70):
        inner = tmp_path / f"package_with_a_long_name_{folder}" / f"module_with_a_long_name_{folder}"
        inner.mkdir(parents=True)
        for number in range(100):
            (inner / f"file_{number}.py").write_text(f"x = {folder * number}\n")
    commit_all(tmp_path)
    blobs = MemoryBlobs()
    survey = await survey_base(tmp_path, blobs)

    assert survey.files == 7000
    assert len(survey.map.encode()) <= 4000
    assert len(msgspec.json.encode(survey)) < 8000
    assert len((await read_manifest(survey.manifest, blobs)).entries) == 7000


def test_an_environment_that_git_neither_tracks_nor_ignores_is_left_out(project: Path) -> None:
    for name in (
        "venv/lib/x.py",
        "web/node_modules/a/__pycache__/b.pyc",
        "lib/venv/mine.py",
        "lib/venv/new.py",
    ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x = 1\n")
    git(project, "add", "lib/venv/mine.py")
    survey, manifest = look_through(project)
    assert {"venv", "web/node_modules"} <= set(manifest.unlisted)
    assert {path for path in manifest.by_path() if "v/" in path or "node" in path} == {
        "lib/venv/mine.py",
        "lib/venv/new.py",
    }
    assert survey.dirty == (".env", "lib/venv/mine.py", "lib/venv/new.py")


def test_before_the_first_commit_nothing_is_committed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    survey, _ = surveyed(tmp_path)
    assert (survey.commit, survey.dirty) == ("", ("a.py",))


def test_settings_that_say_what_has_changed_count(project: Path) -> None:
    (project / "run.sh").chmod(0o644)
    assert "run.sh" in surveyed(project)[0].dirty
    git(project, "config", "core.fileMode", "false")
    git(project, "config", "core.autocrlf", "true")
    git(project, "add", "-A", "--renormalize")
    git(project, "commit", "-qam", "line ends", "--allow-empty")
    (project / "windows.txt").touch()
    assert git(project, "status", "--short") == "?? .env"
    assert surveyed(project)[0].dirty == (".env",)


@pytest.mark.parametrize("tracked", [True, False])
def test_a_name_that_no_log_holds_or_that_is_a_token_is_left_out(project: Path, tracked: bool) -> None:
    for name in (b"caf\xe9.pem", b"ghp_abcdefghijklmnopqrst0123456789.txt"):
        (project / os.fsdecode(name)).write_text("x")
    if tracked:
        git(project, "add", "-A")
    survey, manifest = look_through(project)
    told = msgspec.json.encode(survey) + msgspec.json.encode(manifest)
    assert b"caf" not in told
    assert b"ghp_" not in told


@pytest.mark.parametrize("target", [".env", "notes.db", "key.pem", "../outside.txt"])
def test_a_link_to_what_is_not_shown_is_no_text_for_contributors(project: Path, target: str) -> None:
    (project.parent / "outside.txt").write_text("hidden")
    for name in (".env", "notes.db", "key.pem"):
        (project / name).write_text("hidden")
    (project / "CLAUDE.md").unlink()
    (project / "CLAUDE.md").symlink_to(target)
    (project / "CONTRIBUTING.md").symlink_to("latin.txt")
    survey, _ = surveyed(project)
    assert "hidden" not in survey.conventions
    (project / "CLAUDE.md").unlink()
    (project / "CLAUDE.md").symlink_to("run.sh")
    assert "#!/bin/sh" in surveyed(project)[0].conventions
