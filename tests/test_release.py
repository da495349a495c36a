"""A release says what is new, has links that lead somewhere on an index, and is refused where something is missing."""

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from links import LINK
from release import NotReady, changed_files, check_tree, cut_changelog, index_readme, release

ROOT = Path(__file__).parent.parent
CHANGES = "# Changelog\n\n## Unreleased\n\n- It sings.\n\n## 0.1.0 (2026-11-01)\n\n- It hums.\n"


def test_the_changelog_is_cut_and_a_new_list_begins() -> None:
    cut = cut_changelog(CHANGES, "0.2.0", "2026-11-19")
    assert cut == CHANGES.replace("## Unreleased\n", "## Unreleased\n\n## 0.2.0 (2026-11-19)\n")
    with pytest.raises(NotReady, match="say what is new"):
        cut_changelog(cut, "0.3.0", "2026-11-20")


def test_our_own_files_can_be_cut(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "uv.lock", "README.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    texts = changed_files(tmp_path, "99.0.0", "2099-01-01", published=True)
    assert tomllib.loads(texts["pyproject.toml"])["project"]["version"] == "99.0.0"
    packages = tomllib.loads(texts["uv.lock"])["package"]
    assert [one["version"] for one in packages if one["name"] == "septet"] == ["99.0.0"]
    assert "pip install septet`" in texts["README.md"]
    assert "<!-- index:" not in texts["README.md"]


def test_the_readme_has_links_for_an_index_or_none() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    plain = index_readme(text, "", "0.2.0")
    assert LINK.search(plain) is None
    assert "<img" not in plain
    linked = index_readme(text, "https://example.org/septet", "0.2.0")
    assert LINK.search(linked) is None
    assert "(https://example.org/septet/blob/v0.2.0/docs/models.md)" in linked
    assert '<img src="https://example.org/septet/raw/v0.2.0/docs/images/demo.svg"' in linked


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_a_release_is_refused_where_something_is_missing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "septet"\nversion = "0.2.0"\n')
    git(tmp_path, "init", "-q")
    with pytest.raises(NotReady, match="in no commit"):
        check_tree(tmp_path, "0.3.0")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    git(tmp_path, "tag", "v0.4.0")
    with pytest.raises(NotReady, match=r"a tag v0\.4\.0 already"):
        check_tree(tmp_path, "0.4.0")
    for version in ("0.2.0", "0.1.9", "soon"):
        with pytest.raises(NotReady, match=r"not newer|Invalid version"):
            check_tree(tmp_path, version)
    check_tree(tmp_path, "0.3.0")


@pytest.mark.torture
def test_a_release_of_this_checkout_is_built_committed_and_tagged(tmp_path: Path) -> None:
    """Needs an index, for the build's own packages."""
    copy = tmp_path / "septet"
    git(tmp_path, "clone", "-q", str(ROOT), str(copy))
    git(copy, "config", "user.name", "me")
    git(copy, "config", "user.email", "me@example.org")
    (copy / "CHANGELOG.md").write_text(CHANGES)
    git(copy, "commit", "-qam", "news")

    release(copy, "99.0.0", "2099-01-01", dry_run=True, tag=True)
    assert sorted(path.suffix for path in (copy / "dist").glob("septet-99*")) == [".gz", ".json", ".whl"]
    git(copy, "diff", "--quiet", "HEAD")
    release(copy, "99.0.0", "2099-01-01", dry_run=False, tag=True)
    git(copy, "rev-parse", "v99.0.0")
    assert "## 99.0.0 (2099-01-01)" in (copy / "CHANGELOG.md").read_text()
