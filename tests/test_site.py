"""The documentation site is built from the pages, every link in it leads somewhere, and its reference is the code's."""

import subprocess
import sys
from pathlib import Path

import pytest
from docs_site import assemble, broken_links, build, missing_from_navigation
from links import rewrite_links

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assemble(folder)
    assert build(folder) == ""
    return folder


def test_every_link_leads_somewhere_and_nothing_comes_from_another_server(site: Path) -> None:
    assert broken_links(site / "site") == []
    assert len(list((site / "site").rglob("*.html"))) > 50


def test_every_page_is_in_the_navigation(site: Path) -> None:
    assert missing_from_navigation(site) == []


def test_broken_links_and_foreign_scripts_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html">b</a><a href="#no">no</a><script src="https://x.example/y.js">'
    )
    (tmp_path / "c.html").write_text('<h1 id="top">c</h1><a href="a.html">a</a><a href="#top">top</a>')
    assert broken_links(tmp_path) == [
        "a.html: loads https://x.example/y.js from another server",
        "a.html: #no has no such heading",
        "a.html: b.html is not there",
    ]


def test_links_are_rewritten_outside_of_code_only() -> None:
    text = "[a](../x.md#part) `[b](../x.md)` [`c`](../y.py) ![d](d.png) [e](https://e.example)\n```\n[f](../x.md)\n```\n"
    targets = {"x.md": "new.md", "docs/d.png": "d.png"}
    assert rewrite_links(text, "docs/page.md", targets.get) == (
        "[a](new.md#part) `[b](../x.md)` `c` ![d](d.png) [e](https://e.example)\n```\n[f](../x.md)\n```\n"
    )


def test_the_reference_is_that_of_the_code() -> None:
    script = ROOT / "scripts" / "reference.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
