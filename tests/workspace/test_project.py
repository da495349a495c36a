"""What is read off a project: its map, its conventions, what it needs, how it is set up and tested."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from septet.domain.base import BaseEntry
from septet.workspace import project
from septet.workspace.project import (
    LONGEST_CONVENTIONS,
    SETTINGS,
    conventions,
    folder_lines,
    interpreter,
    join_within,
    map_text,
    project_text,
    requirements,
    setup_command,
    size_text,
)


def entries(**sizes: int) -> list[BaseEntry]:
    return [BaseEntry(path=path, size=size) for path, size in sizes.items()]


def fill(folder: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1 kB"),
        (1_500, "2 kB"),
        (999_499, "999 kB"),
        (1_000_000, "1.0 MB"),
        (12_340_000, "12.3 MB"),
    ],
)
def test_sizes_are_told_short(size: int, text: str) -> None:
    assert size_text(size) == text


def test_a_map_has_two_levels_of_folders_the_largest_first() -> None:
    files = {
        "README.md": 10,
        "LICENSE": 5,
        "small/a.py": 100,
        "src/b.py": 2_000,
        "src/deep/c.py": 3_000,
        "src/deep/deeper/d.ts": 1,
        "src/e.PY": 7,
    }
    assert map_text(entries(**files)) == "\n".join(
        [
            "7 files, 5 kB: Python 4, Markdown 1, TypeScript 1",
            "src/ 4 files, 5 kB",
            "  deep/ 2 files, 3 kB",
            "  b.py 2 kB",
            "  e.PY 7 B",
            "small/ 1 file, 100 B",
            "  a.py 100 B",
            "README.md 10 B",
            "LICENSE 5 B",
        ]
    )
    assert map_text([]) == ""
    assert map_text(entries(LICENSE=5)) == "1 file, 5 B\nLICENSE 5 B"


def test_of_many_folders_and_files_the_first_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("septet.workspace.project.MOST_LINES", 4)
    many = entries(**{f"{name}/x": size for size, name in enumerate("fedcba")})
    lines = [*folder_lines(many, "", 2)]
    assert [line for line in lines if line.endswith("B") and "/" in line] == [
        f"{name}/ 1 file, {size} B" for size, name in reversed([*enumerate("fedcba")])
    ][:4]
    assert lines[-1] == "… 2 more folders"
    files = entries(**dict.fromkeys("abcde", 1))
    assert [*folder_lines(files, "", 2)] == ["a 1 B", "b 1 B", "c 1 B", "d 1 B"]
    assert [*folder_lines(files, "", 1)] == []
    assert [*folder_lines(files[:2], " ", 1)] == [" a 1 B", " b 1 B"]
    assert [*folder_lines(files[:3], " ", 1)] == []


def test_lines_are_joined_as_far_as_there_is_room() -> None:
    assert join_within(["abcd", "efgh"], 18) == "abcd\nefgh"
    assert join_within(["abcd", "efgh"], 17) == "abcd\n…"
    assert join_within(["ää", "efgh"], 17) == "ää\n…"


def test_conventions_are_told_once_and_cut(tmp_path: Path) -> None:
    fill(tmp_path, {"AGENTS.md": "Use tabs.\n", "CLAUDE.md": "Use tabs.\n", "CONTRIBUTING.md": "Ask.\n"})
    fill(tmp_path, {"CONTRIBUTING.rst": " \n", "CONTRIBUTING.txt": "not listed"})
    there = entries(**dict.fromkeys(("AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md", "CONTRIBUTING.rst"), 1))
    assert conventions(tmp_path, there) == "## AGENTS.md\nUse tabs.\n\n## CONTRIBUTING.md\nAsk."
    head = "## AGENTS.md\n"
    for extra, cut in ((0, False), (1, True)):
        text = "x" * (LONGEST_CONVENTIONS - len(head) + extra)
        (tmp_path / "AGENTS.md").write_text(text)
        whole = head + text
        expected = f"{whole[:LONGEST_CONVENTIONS]}\n…" if cut else whole
        assert conventions(tmp_path, there[:1]) == expected


def test_a_settings_file_is_read_if_it_is_a_short_text_of_the_project(tmp_path: Path) -> None:
    fill(tmp_path, {"a.toml": "x", ".env": "A=1", "bin": "\0", "long": "x" * (SETTINGS + 5)})
    (tmp_path / "inside").symlink_to("a.toml")
    (tmp_path / "outside").symlink_to("/etc/hostname")
    names = ("a.toml", "inside", "outside", ".env", "bin", "none")
    assert [project_text(tmp_path, name) for name in names] == ["x", "x", "", "", "", ""]
    assert project_text(tmp_path, "long") == "x" * SETTINGS


def test_the_interpreter_of_the_project_is_that_of_its_environment(tmp_path: Path) -> None:
    assert interpreter(tmp_path) == ""
    fill(tmp_path, {".venv/pyvenv.cfg": ""})
    assert interpreter(tmp_path) == ""
    fill(tmp_path, {".venv/bin/python": ""})
    assert interpreter(tmp_path) == ".venv/bin/python"
    (tmp_path / ".venv/pyvenv.cfg").unlink()
    assert interpreter(tmp_path) == ""


PYPROJECT = """
[project]
dependencies = ["requests>=2", "local @ file:///x", "rich ; python_version < '3.9'"]
[project.optional-dependencies]
dev = ["pytest == 8.*"]
docs = ["sphinx"]
tests = ["hypothesis"]
[dependency-groups]
dev = ["ruff", {include-group = "test"}]
test = ["pytest-cov[toml]>=4,<6"]
"""
POETRY = """
[[package]]
name = "requests"
version = "2.31"
optional = false
[[package]]
name = "colorama"
version = "1"
optional = true
[[package]]
name = "winonly"
version = "1"
markers = "sys_platform == 'win32'"
"""
LISTED = "# tools\nrequests==2.31  # why\n-r other.txt\nrich\nrequests==2.31\n\nhttps://x/y.whl\n"


@pytest.mark.parametrize(
    ("files", "needed"),
    [
        ({}, ()),
        (
            {"pyproject.toml": PYPROJECT, "requirements.txt": LISTED},
            ("requests>=2", "hypothesis", "pytest==8.*", "pytest-cov[toml]>=4,<6", "ruff"),
        ),
        ({"pyproject.toml": PYPROJECT, "poetry.lock": POETRY}, ("requests==2.31",)),
        ({"requirements.txt": LISTED}, ("requests==2.31", "rich")),
        ({"requirements-dev.txt": "pytest\n", "requirements.txt": "rich\n"}, ("rich", "pytest")),
        ({"pyproject.toml": "[broken", "requirements.txt": "rich"}, ("rich",)),
        ({"pyproject.toml": "project = 5", "poetry.lock": "package = 5"}, ()),
    ],
)
def test_what_a_project_needs_is_what_it_says(
    tmp_path: Path, files: dict[str, str], needed: tuple[str, ...]
) -> None:
    assert requirements(fill(tmp_path, files)) == needed


REQUIREMENTS = "uv venv -q && uv pip install -p .venv"
NPM = "npm ci --ignore-scripts"


@pytest.mark.parametrize(
    ("files", "there", "command"),
    [
        ({}, [], ""),
        ({"uv.lock": ""}, [], "uv sync --frozen"),
        ({"uv.lock": "", "pyproject.toml": PYPROJECT}, [],
         "uv sync --frozen --extra tests --extra dev --group test"),
        ({"uv.lock": ""}, [".venv"], ""),
        ({"requirements.txt": "", "requirements-dev.txt": ""}, [],
         f"{REQUIREMENTS} -r requirements.txt -r requirements-dev.txt"),
        ({"requirements.txt": "rich", "pyproject.toml": PYPROJECT}, [], ""),
        ({"requirements.txt": "rich", "poetry.lock": ""}, [], ""),
        ({"package-lock.json": ""}, [], NPM),
        ({"npm-shrinkwrap.json": ""}, [], NPM),
        ({"package-lock.json": ""}, ["node_modules"], ""),
        ({"uv.lock": "", "package-lock.json": ""}, [], f"uv sync --frozen && {NPM}"),
        ({"uv.lock": "", "pyproject.toml": "project = 5"}, [], "uv sync --frozen"),
    ],
)  # fmt: skip
def test_a_project_is_set_up_by_its_lock_files(
    tmp_path: Path, files: dict[str, str], there: list[str], command: str
) -> None:
    assert setup_command(fill(tmp_path, files), there) == command


PYTEST = "python -m pytest"


@pytest.mark.parametrize(
    ("files", "command", "source"),
    [
        ({}, "", ""),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, PYTEST, "pyproject.toml"),
        ({"pyproject.toml": "[tool.x]\n", "setup.cfg": "[tool:pytest]\n"}, PYTEST, "setup.cfg"),
        ({"setup.cfg": "[metadata]\n"}, "", ""),
        ({"pytest.ini": ""}, PYTEST, "pytest.ini"),
        ({"tox.ini": "commands = pytest -q\n"}, PYTEST, "tox.ini"),
        ({"tox.ini": "[testenv]\n"}, "", ""),
        ({"tests/test_b.py": "", "tests/test_a.py": "", "a.py": ""}, PYTEST, "tests/test_a.py"),
        ({"pyproject.toml": "[broken", "a.py": ""}, "", ""),
        ({"package.json": '{"scripts": {"test": "vitest"}}'}, "npm test", "package.json"),
        ({"package.json": '{"scripts": {"test": "echo no test specified"}}'}, "", ""),
        ({"package.json": "{}", "a.test.js": "", "b.test.mjs": ""}, "node --test", "a.test.js"),
        ({"package.json": "[]"}, "", ""),
        ({"package.json": "{"}, "", ""),
        ({"a.test.js": ""}, "", ""),
        ({"go.mod": "", "Makefile": "test:\n"}, "go test ./...", "go.mod"),
        ({"Cargo.toml": ""}, "cargo test", "Cargo.toml"),
        ({"Makefile": "all:\ntest :\n"}, "make test", "Makefile"),
        ({"Makefile": "all: test\n"}, "", ""),
    ],
)
def test_the_suite_is_found_by_its_first_sign(
    tmp_path: Path, files: dict[str, str], command: str, source: str
) -> None:
    fill(tmp_path, files)
    assert project.test_command(tmp_path, entries(**dict.fromkeys(files, 1))) == (command, source)
