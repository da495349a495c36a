"""What is served is what the sources say: the built page is checked in, small, and built the same anywhere."""

import gzip
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCES = ROOT / "web"
ASSETS = ROOT / "src" / "septet" / "web" / "assets"
FIRST_LOAD = 100 * 1024
LONGEST = 300


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
    assert len(lines) <= LONGEST
    assert lines[0].startswith("// ")
