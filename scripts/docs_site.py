"""Builds the documentation site from docs/ and the pages at the root, and checks every link in it.

Run: python scripts/docs_site.py [FOLDER]    (build; the site is FOLDER/site)

Nothing on the site comes from another server. Links to source files lead to the repository when pyproject.toml
names one (`[project.urls] Repository`), and are plain names until then.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from posixpath import relpath
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from links import rewrite_links

ROOT = Path(__file__).parent.parent
ROOT_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "report-a-vulnerability.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
}
"""Pages outside of docs/, and where they are on the site."""
LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src")}
"""What a browser loads by itself; `a` is followed by people."""


LISTED = ("examples/", "decisions/", "measurements/")
"""Folders whose pages an index or another page lists."""
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def assemble(folder: Path, root: Path = ROOT) -> None:
    """Write the site's pages into FOLDER/docs, with the links that hold there."""
    pages = folder / "docs"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(root / "docs", pages)
    shutil.copytree(root / "examples", pages / "examples")
    shutil.copy(root / "zensical.toml", folder / "zensical.toml")
    repository = repository_url(root)
    sources = [f"docs/{path.relative_to(pages).as_posix()}" for path in sorted(pages.rglob("*.md"))]
    sources = [path.removeprefix("docs/") if path.startswith("docs/examples/") else path for path in sources]
    for source in (*sources, *ROOT_PAGES):
        place = site_path(source, root)
        assert place is not None, "a page is on the site"

        def target(path: str, place: str = place) -> str | None:
            found = site_path(path, root)
            if found is None:
                return f"{repository}/blob/main/{path}" if repository else None
            return relpath(found, PurePosixPath(place).parent.as_posix())

        text = (root / source).read_text(encoding="utf-8")
        (pages / place).write_text(rewrite_links(text, source, target), encoding="utf-8")
    (pages / "decisions" / "index.md").write_text(list_of_decisions(pages / "decisions"), encoding="utf-8")
    (pages / "measurements" / "index.md").write_text(
        list_of_measurements(pages / "measurements"), encoding="utf-8"
    )


def list_of_decisions(folder: Path) -> str:
    """An index of the dated notes, the newest first, by their titles."""
    notes = sorted(folder.glob("20*.md"), reverse=True)
    titles = [
        re.sub(r"^# (?:[\d-]+(?: ·|:) )?|\s*\([\d-]+\)$", "", path.read_text(encoding="utf-8").split("\n")[0])
        for path in notes
    ]
    lines = [f"- {path.name[:10]}: [{title}]({path.name})" for path, title in zip(notes, titles, strict=True)]
    return "\n".join(
        [
            "# Decisions",
            "",
            "Decisions that would take more than a day to undo, with their reasons.",
            "",
            *lines,
            "",
        ]
    )


def list_of_measurements(folder: Path) -> str:
    """An index of the pages with figures, by their titles."""
    titles = [
        (path.read_text(encoding="utf-8").split("\n")[0].removeprefix("# "), path.name)
        for path in sorted(folder.glob("*.md"))
        if path.name != "index.md"
    ]
    lines = [f"- [{title}]({name})" for title, name in titles]
    return "\n".join(
        ["# Measurements", "", "What was measured, each with its date and its command.", "", *lines, ""]
    )


def site_path(path: str, root: Path) -> str | None:
    """Where a file of the repository is on the site; None for sources, which are not there."""
    if path in ROOT_PAGES:
        return ROOT_PAGES[path]
    if path.startswith("docs/decisions") and not path.endswith(".md"):
        return "decisions/index.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return path if path.startswith("examples/") and (root / path).is_file() else None


def repository_url(root: Path = ROOT) -> str:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project.get("urls", {}).get("Repository", "")).rstrip("/")


def build(folder: Path) -> str:
    """Make the site; return what the builder has to complain about."""
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean"],
        cwd=folder,
        env={"NO_COLOR": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    told = COLOUR.sub("", done.stdout + done.stderr).split("Traceback")[0]
    return "" if done.returncode == 0 else told


class Page(NamedTuple):
    links: frozenset[str]
    loaded: frozenset[str]
    ids: frozenset[str]


class PageParser(HTMLParser):
    """Collects what a page links to, loads and offers as targets."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.ids.add(value)
            elif (tag, name) in LOADED and value:
                self.loaded.add(value)
            elif (tag, name) == ("a", "href") and value:
                self.links.add(value)


def read_page(path: Path) -> Page:
    parser = PageParser()
    parser.feed(path.read_text(encoding="utf-8"))
    return Page(frozenset(parser.links), frozenset(parser.loaded), frozenset(parser.ids))


def broken_links(site: Path) -> list[str]:
    """Return the links that lead nowhere, and what is loaded from another server, a line each."""
    pages = {path: read_page(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    return [
        f"{path.relative_to(site)}: {fault}"
        for path, page in pages.items()
        for fault in faults(path, page, pages)
    ]


def faults(path: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    yield from (f"loads {one} from another server" for one in sorted(page.loaded) if urlsplit(one).netloc)
    for link in sorted(page.links | page.loaded):
        address = urlsplit(link)
        if address.scheme or address.netloc:
            continue
        found = (path.parent / unquote(address.path)).resolve() if address.path else path
        if found.is_dir():
            found /= "index.html"
        if not found.is_file():
            yield f"{link} is not there"
        elif address.fragment and found in pages and unquote(address.fragment) not in pages[found].ids:
            yield f"{link} has no such heading"


def missing_from_navigation(folder: Path) -> list[str]:
    """Pages that no entry of the navigation names."""
    navigation = tomllib.loads((folder / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    named = set(re.findall(r"[\w./-]+\.md", repr(navigation)))
    there = {path.relative_to(folder / "docs").as_posix() for path in (folder / "docs").rglob("*.md")}
    return sorted(there - named - {path for path in there if path.startswith(LISTED)})


def main(arguments: Iterable[str]) -> int:
    folder = Path(next(iter(arguments), str(ROOT / "build"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    assemble(folder)
    complaints = build(folder) or "\n".join(broken_links(folder / "site"))
    sys.stderr.write(f"{complaints}\n" if complaints else "")
    print(f"{folder / 'site' / 'index.html'}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
