"""Surveys a project: a map of its files, its conventions, interpreter, dependencies and test command."""

import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from septet.common.secrets import is_secret_name
from septet.common.text import pluralize
from septet.domain.base import BaseEntry
from septet.domain.files import is_test
from septet.workspace.listing import is_secret, text_of_content

LONGEST_MAP = 4_000
MOST_LINES = 24
"""Entries per folder in the map."""
MOST_LANGUAGES = 6
LONGEST_CONVENTIONS = 6_000
CONVENTIONS = ("AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md", "CONTRIBUTING.rst", "CONTRIBUTING.txt")
SETTINGS = 256 << 10
"""Largest settings file that is read, in bytes."""
LONGEST_LOCK = 4 << 20
LANGUAGE_NAMES = {
    "py": "Python",
    "pyi": "Python",
    "js": "JavaScript",
    "mjs": "JavaScript",
    "cjs": "JavaScript",
    "jsx": "JavaScript",
    "ts": "TypeScript",
    "tsx": "TypeScript",
    "go": "Go",
    "rs": "Rust",
    "java": "Java",
    "kt": "Kotlin",
    "c": "C",
    "h": "C",
    "cc": "C++",
    "cpp": "C++",
    "hpp": "C++",
    "cs": "C#",
    "rb": "Ruby",
    "php": "PHP",
    "swift": "Swift",
    "sh": "shell",
    "html": "HTML",
    "css": "CSS",
    "md": "Markdown",
    "rst": "reStructuredText",
    "json": "JSON",
    "yaml": "YAML",
    "yml": "YAML",
    "toml": "TOML",
    "sql": "SQL",
}


def map_text(entries: Sequence[BaseEntry]) -> str:
    """A map with two levels of folders and their sizes, the largest first."""
    if not entries:
        return ""
    head = f"{pluralize(len(entries), 'file')}, {size_text(sum(one.size for one in entries))}"
    spoken = Counter(name for one in entries if (name := language(one.path)))
    named = ", ".join(f"{name} {count}" for name, count in spoken.most_common(MOST_LANGUAGES))
    lines = [f"{head}: {named}" if named else head, *folder_lines(entries, "", 2)]
    return join_within(lines, LONGEST_MAP)


def join_within(lines: Iterable[str], longest: int) -> str:
    kept: list[str] = []
    room = longest
    for line in lines:
        room -= len(line.encode()) + 1
        if room < 8:
            kept.append("…")
            break
        kept.append(line)
    return "\n".join(kept)


def folder_lines(entries: Iterable[BaseEntry], indent: str, levels: int) -> Iterator[str]:
    """The folders of one level, each with its own below it, then the files."""
    folders: dict[str, list[BaseEntry]] = defaultdict(list)
    files: list[BaseEntry] = []
    for entry in entries:
        name, slash, rest = entry.path.partition("/")
        if slash:
            folders[name].append(BaseEntry(path=rest, size=entry.size))
        else:
            files.append(entry)
    sizes = {name: sum(one.size for one in inner) for name, inner in folders.items()}
    for name in sorted(folders, key=lambda name: -sizes[name])[:MOST_LINES]:
        yield f"{indent}{name}/ {pluralize(len(folders[name]), 'file')}, {size_text(sizes[name])}"
        if levels > 1:
            yield from folder_lines(folders[name], indent + "  ", levels - 1)
    if levels > 1 or len(files) <= MOST_LINES // 2:
        yield from (f"{indent}{one.path} {size_text(one.size)}" for one in files[:MOST_LINES])
    if (left := max(0, len(folders) - MOST_LINES)) > 0:
        yield f"{indent}… {pluralize(left, 'more folder')}"


def size_text(size: int) -> str:
    if size < 1_000:
        return f"{size} B"
    return f"{size / 1_000:.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


def language(path: str) -> str:
    return LANGUAGE_NAMES.get(path.rpartition(".")[2].lower(), "")


def conventions(folder: Path, entries: Iterable[BaseEntry]) -> str:
    """The texts of the project's files for contributors; identical texts appear once."""
    there = {entry.path for entry in entries}
    texts: dict[str, str] = {}
    for name in CONVENTIONS:
        shown = name in there and is_shown(folder / name, folder.resolve(), there)
        text = project_text(folder, name) if shown else ""
        if text.strip() and text not in texts.values():
            texts[name] = text
    parts = [f"## {name}\n{text.strip()}" for name, text in texts.items()]
    whole = "\n\n".join(parts)
    cut = whole.encode()[:LONGEST_CONVENTIONS].decode(errors="ignore")
    return whole if cut == whole else f"{cut}\n…"


def is_shown(place: Path, root: Path, there: Collection[str]) -> bool:
    """Whether the file is no link, or one to a file of the base that is no secret: not to what git ignores."""
    real = place.resolve()
    path = str(real.relative_to(root)) if real.is_relative_to(root) else ""
    return not place.is_symlink() or (path in there and not is_secret_name(path))


def project_text(folder: Path, path: str, longest: int = SETTINGS) -> str:
    """A file's text; empty if it is binary, too long or looks like a secret."""
    with suppress(OSError):
        place = folder / path
        if place.is_symlink() and not place.resolve().is_relative_to(folder.resolve()):
            return ""
        with place.open("rb") as file:
            content = file.read(longest)
        return "" if is_secret(path, content) else text_of_content(content, longest) or ""
    return ""


def interpreter(folder: Path) -> str:
    """The path of the Python interpreter in the project's own environment."""
    python = folder / ".venv" / "bin" / "python"
    return ".venv/bin/python" if (folder / ".venv" / "pyvenv.cfg").is_file() and python.exists() else ""


TEST_GROUPS = ("test", "tests", "testing", "dev")
"""Names of optional dependencies that a project's tests need."""
REQUIREMENT_FILES = (
    "requirements.txt",
    "requirements-test.txt",
    "requirements-dev.txt",
    "test-requirements.txt",
)
REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[\w.,\s-]+])?(?:\s*[<>=!~]=?\s*[\w.*+!]+\s*,?)*")


def requirements(folder: Path) -> tuple[str, ...]:
    """What the project says that it and its tests need; nothing that comes from an address, or only sometimes."""
    if found := poetry_pins(folder) or declared_requirements(folder):
        return found
    lines = [line for name in REQUIREMENT_FILES for line in project_text(folder, name).splitlines()]
    return plain_requirements(line.partition(" #")[0] for line in lines)


def declared_requirements(folder: Path) -> tuple[str, ...]:
    """Those of pyproject.toml."""
    with suppress(tomllib.TOMLDecodeError, AttributeError, TypeError):
        settings = tomllib.loads(project_text(folder, "pyproject.toml"))
        project = settings.get("project", {})
        groups = [project.get("optional-dependencies", {}), settings.get("dependency-groups", {})]
        found = [
            *project.get("dependencies", ()),
            *(one for group in groups for name in TEST_GROUPS for one in group.get(name, ())),
        ]
        return plain_requirements(found)
    return ()


def poetry_pins(folder: Path) -> tuple[str, ...]:
    """What poetry.lock has chosen, without what only some systems need."""
    with suppress(tomllib.TOMLDecodeError, AttributeError, TypeError):
        packages = tomllib.loads(project_text(folder, "poetry.lock", LONGEST_LOCK)).get("package", ())
        chosen = [one for one in packages if not one.get("optional") and "markers" not in one]
        return plain_requirements(f"{one.get('name')}=={one.get('version')}" for one in chosen)
    return ()


def setup_command(folder: Path, paths: Collection[str]) -> str:
    """What makes the environments that the lock files describe and that are not among the paths of the folder."""
    commands: list[str] = []
    if ".venv" not in paths:
        commands += python_setup(folder)
    locks = ("package-lock.json", "npm-shrinkwrap.json")
    if "node_modules" not in paths and any((folder / name).is_file() for name in locks):
        commands.append("npm ci --ignore-scripts")
    return " && ".join(commands)


def python_setup(folder: Path) -> list[str]:
    """uv does what its lock file says; requirement files count where nothing else says what is needed."""
    if (folder / "uv.lock").is_file():
        return [" ".join(["uv sync --frozen", *test_options(folder)])]
    files = [name for name in REQUIREMENT_FILES if (folder / name).is_file()]
    if not files or declared_requirements(folder) or (folder / "poetry.lock").is_file():
        return []
    return [f"uv venv -q && uv pip install -p .venv {' '.join(f'-r {name}' for name in files)}"]


def test_options(folder: Path) -> list[str]:
    """The extras and groups that a project's tests need; uv takes the group `dev` by itself."""
    with suppress(tomllib.TOMLDecodeError, AttributeError, TypeError):
        settings = tomllib.loads(project_text(folder, "pyproject.toml"))
        extras = settings.get("project", {}).get("optional-dependencies", {})
        groups = settings.get("dependency-groups", {})
        return [
            *(f"--extra {name}" for name in TEST_GROUPS if name in extras),
            *(f"--group {name}" for name in TEST_GROUPS if name in groups and name != "dev"),
        ]
    return []


def plain_requirements(found: Iterable[object]) -> tuple[str, ...]:
    words = ("".join(one.split()) for one in found if isinstance(one, str))
    return tuple(dict.fromkeys(one for one in words if REQUIREMENT.fullmatch(one)))


class TestCommand(NamedTuple):
    """The project's test command, and the file that it was derived from."""

    __test__ = False

    command: str = ""
    source: str = ""


def test_command(folder: Path, entries: Sequence[BaseEntry]) -> TestCommand:
    """Find the test command by the first sign of a known suite."""
    paths = {entry.path for entry in entries}
    for find in (pytest_command, node_command, compiled_command, make_command):
        if (found := find(folder, paths)).command:
            return found
    return TestCommand()


def pytest_command(folder: Path, paths: set[str]) -> TestCommand:
    signs: dict[str, Callable[[str], bool]] = {
        "pyproject.toml": has_pytest_table,
        "pytest.ini": lambda _: True,
        "setup.cfg": lambda text: "[tool:pytest]" in text,
        "tox.ini": lambda text: re.search(r"^\[pytest\]|\bpytest\b", text, re.MULTILINE) is not None,
    }
    for name, says_so in signs.items():
        if name in paths and says_so(project_text(folder, name)):
            return TestCommand("python -m pytest", name)
    tests = sorted(path for path in paths if path.endswith(".py") and is_test(path))
    return TestCommand("python -m pytest", tests[0]) if tests else TestCommand()


def has_pytest_table(text: str) -> bool:
    with suppress(tomllib.TOMLDecodeError):
        return "pytest" in tomllib.loads(text).get("tool", {})
    return False


def node_command(folder: Path, paths: set[str]) -> TestCommand:
    if "package.json" not in paths:
        return TestCommand()
    with suppress(ValueError, AttributeError):
        script = json.loads(project_text(folder, "package.json") or "{}").get("scripts", {}).get("test", "")
        if script and "no test specified" not in script:
            return TestCommand("npm test", "package.json")
    tests = [path for path in paths if is_test(path) and path.endswith((".js", ".mjs", ".cjs"))]
    return TestCommand("node --test", min(tests)) if tests else TestCommand()


def compiled_command(folder: Path, paths: set[str]) -> TestCommand:
    known = {"go.mod": "go test ./...", "Cargo.toml": "cargo test"}
    return next((TestCommand(known[name], name) for name in known if name in paths), TestCommand())


def make_command(folder: Path, paths: set[str]) -> TestCommand:
    text = project_text(folder, "Makefile") if "Makefile" in paths else ""
    found = re.search(r"^test\s*:", text, re.MULTILINE)
    return TestCommand("make test", "Makefile") if found else TestCommand()
