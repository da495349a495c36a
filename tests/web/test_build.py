"""What is served is what the sources say: the built page is checked in, small, and built the same anywhere.

The sources themselves are formatted, and their types are those of the Python code.
"""

import gzip
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCES = ROOT / "web"
ASSETS = ROOT / "src" / "septet" / "web" / "assets"
FIRST_LOAD = 100 * 1024
LONGEST = 500
GENERATED = "events.ts"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_built_page_is_what_its_sources_say(modules: Path, tmp_path: Path) -> None:
    out = tmp_path / "assets"
    subprocess.run(["node", "build.mjs", "--out", str(out)], cwd=modules, check=True, timeout=120)
    assert contents(out) == contents(ASSETS), "run npm run build in web/"


def test_the_page_has_its_types_right(modules: Path) -> None:
    subprocess.run(
        ["node", "node_modules/typescript/bin/tsc", "--noEmit"], cwd=modules, check=True, timeout=300
    )


def test_a_kind_of_event_that_the_page_does_not_know_is_an_error_of_types(
    modules: Path, tmp_path: Path
) -> None:
    shutil.copytree(modules / "src", tmp_path / "src")
    shutil.copy(modules / "tsconfig.json", tmp_path)
    (tmp_path / "node_modules").symlink_to(modules / "node_modules")
    events = tmp_path / "src" / GENERATED
    declared = events.read_text().rstrip().removesuffix(";")
    events.write_text(f"{declared}\n  | Envelope<'septet.toy_happened', StepGranted>;\n")
    checked = subprocess.run(
        ["node", "node_modules/typescript/bin/tsc", "--noEmit"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert checked.returncode != 0
    assert "src/fold.ts" in checked.stdout
    assert "'never'" in checked.stdout


def test_the_pages_types_are_those_of_the_python_code() -> None:
    subprocess.run([sys.executable, ROOT / "scripts" / "events_ts.py", "--check"], check=True, timeout=60)


def test_the_sources_are_formatted(modules: Path) -> None:
    subprocess.run(
        ["node", "node_modules/prettier/bin/prettier.cjs", "--check", "src", "build.mjs"],
        cwd=modules,
        check=True,
        timeout=120,
    )


def test_the_first_load_is_small() -> None:
    page = (ASSETS / "index.html").read_text()
    wanted = set(re.findall(r'(?:src|href)="/assets/([^"]+)"', page))
    for name in list(wanted):
        if name.endswith(".js"):
            wanted |= set(re.findall(r'from"\./([^"]+\.js)"', (ASSETS / name).read_text()))
    loaded = sum(len(gzip.compress((ASSETS / name).read_bytes())) for name in wanted) + len(page)
    assert len(wanted) >= 3
    assert loaded <= FIRST_LOAD, f"{loaded} bytes"


def test_the_page_loads_nothing_from_elsewhere() -> None:
    page = (ASSETS / "index.html").read_text()
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
    lock = (SOURCES / "package-lock.json").read_text()
    assert '"resolved"' not in lock


@pytest.mark.parametrize("path", sorted((SOURCES / "src").iterdir()), ids=lambda path: path.name)
def test_sources_stay_short_and_say_what_they_are_for(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) <= LONGEST or path.name == GENERATED
    assert lines[0].startswith("// ")
