"""The pages tell where things are: what they name and draw is there."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "septet"
GLOSSARY = ROOT / "docs" / "glossary.md"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(
        path
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if path.parent.name not in ("decisions", "measurements")
    ),
]
"""All but decisions and figures, which tell of the code of their day and of other projects' files."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    modules = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text)
    links = re.findall(r"\]\(([\w./-]+\.(?:md|py|png))\)", text)
    homes = (ROOT, SOURCE, SOURCE.parent)
    gone = [name for name in modules if not any((home / name).exists() for home in homes)]
    assert gone + [link for link in links if not (page.parent / link).exists()] == []


def test_the_picture_is_that_of_the_code() -> None:
    script = ROOT / "scripts" / "architecture.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_function_that_a_page_names_with_its_module_is_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)` `(\w+)`", text)
    assert named, "the walks name functions"
    gone = [f"{path}: {name}" for path, name in named if name not in definitions(SOURCE / path)]
    assert gone == []


def test_every_word_of_the_glossary_is_one_of_the_code() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE
    )[1:]
    words = [word for word, _ in rows if word != "---"]
    assert words == sorted(set(words), key=str.lower), "one meaning a word, in alphabetical order"
    used = {name for path in SOURCE.rglob("*.py") for name in names_in(path)}
    code = [name for _, names in rows for name in re.findall(r"`(\w+)`", names)]
    assert [name for name in code if name not in used] == []


def definitions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def names_in(path: Path) -> set[str]:
    return {
        *re.findall(r"\w+", path.read_text(encoding="utf-8")),
        *path.relative_to(SOURCE).with_suffix("").parts,
    }
