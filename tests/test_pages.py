"""The pages tell where things are: every module and page that they name exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "septet"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    modules = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text)
    links = re.findall(r"\]\(([\w./-]+\.(?:md|py|png))\)", text)
    homes = (ROOT, SOURCE, SOURCE.parent)
    gone = [name for name in modules if not any((home / name).exists() for home in homes)]
    assert gone + [link for link in links if not (page.parent / link).exists()] == []
