"""The shape of the code: what must hold of every module.

Layers, purity and cycles are held by `lint-imports` (pyproject.toml); `scripts/house.py` prints figures, not gates.
"""

import ast
import re
import tomllib
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "septet"
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST_FUNCTION = 40
LONGEST_CONDUCTOR = 60
ROOT = SOURCE.parent.parent
MOST_DISTRIBUTIONS = 30
"""Of an installation without extras on Linux."""
ELSEWHERE = re.compile(r"sys_platform == '(?:win32|emscripten)'")


def name(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_functions_stay_short(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= LONGEST_FUNCTION, f"{node.name} has {lines} lines"


def test_the_conductor_fits_on_one_screen() -> None:
    assert len((SOURCE / "runtime" / "conductor.py").read_text().splitlines()) <= LONGEST_CONDUCTOR


@pytest.mark.parametrize(
    "path", [p for p in MODULES if p.name == "__init__.py" and p.parent != SOURCE], ids=name
)
def test_packages_export_nothing(path: Path) -> None:
    assert path.read_text() == ""


@pytest.mark.parametrize("path", [p for p in MODULES if p.name != "__init__.py"], ids=name)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def distributions() -> set[str]:
    """What an installation without extras brings on Linux, by the lock file."""
    packages = {one["name"]: one for one in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    found: set[str] = set()
    waiting = ["septet"]
    while waiting:
        for needed in packages[waiting.pop()].get("dependencies", ()):
            if needed["name"] not in found and not ELSEWHERE.search(needed.get("marker", "")):
                found.add(needed["name"])
                waiting.append(needed["name"])
    return found


def test_an_installation_stays_small_and_each_dependency_has_its_reason() -> None:
    assert len(distributions()) <= MOST_DISTRIBUTIONS
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    direct = {re.split("[<>=]", one)[0] for one in project["dependencies"]}
    page = (ROOT / "docs" / "dependencies.md").read_text()
    assert set(re.findall(r"^\| `([\w-]+)` \| \w", page, re.MULTILINE)) == direct
