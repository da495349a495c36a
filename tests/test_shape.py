"""The shape of the code: what STYLE asks for is held by numbers."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "septet"
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST_MODULE = 500
LONGEST_FUNCTION = 40
LONGEST_CONDUCTOR = 60


def name(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_modules_and_functions_stay_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= LONGEST_MODULE
    for node in ast.walk(ast.parse(text)):
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
