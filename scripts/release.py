"""Makes a release: checks, wheel, sdist, SBOM, changelog, version and tag, by one command.

Run: python scripts/release.py VERSION [--dry-run] [--no-tag]    (just release VERSION)

Everything is built and checked in a copy of the last commit first; only then is the checkout changed, committed and
tagged. `--dry-run` changes nothing but dist/. `--no-tag` makes the commit only, and README.md does not yet say how to
install from an index.
"""

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from email import message_from_bytes
from pathlib import Path

from links import LINK, Target, rewrite_links
from packaging.metadata import Metadata
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parent.parent
UNRELEASED = "## Unreleased\n"
INDEX_LINE = re.compile(r"<!-- index: (.*?) -->", re.DOTALL)
VERSION_LINE = re.compile(r'(?m)^version = "([^"]+)"$')
LOCKED_VERSION = re.compile(r'(?m)^(name = "septet"\nversion = )"[^"]+"$')


class NotReady(Exception):
    """Why there is no release."""


def call(*command: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotReady(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def check_tree(root: Path, version: str) -> None:
    """Refuse a version that is not newer, a tag that exists, and changes that are in no commit."""
    if call("git", "status", "--porcelain", cwd=root).strip():
        raise NotReady("the checkout has changes that are in no commit: commit them first")
    if call("git", "tag", "--list", f"v{version}", cwd=root).strip():
        raise NotReady(f"there is a tag v{version} already: choose another version")
    found = VERSION_LINE.search((root / "pyproject.toml").read_text(encoding="utf-8"))
    try:
        newer = found is not None and Version(version) > Version(found[1])
    except InvalidVersion as error:
        raise NotReady(f"{error}: write it as in 0.2.0") from None
    if not newer:
        raise NotReady(f"{version} is not newer than {found[1] if found else 'nothing'}")


def changed_files(root: Path, version: str, day: str, published: bool) -> dict[str, str]:
    """The files that a release changes, with their new text."""
    texts = {
        name: (root / name).read_text(encoding="utf-8")
        for name in ("pyproject.toml", "uv.lock", "CHANGELOG.md")
    }
    texts["pyproject.toml"] = VERSION_LINE.sub(f'version = "{version}"', texts["pyproject.toml"], count=1)
    texts["uv.lock"] = LOCKED_VERSION.sub(rf'\g<1>"{version}"', texts["uv.lock"], count=1)
    texts["CHANGELOG.md"] = cut_changelog(texts["CHANGELOG.md"], version, day)
    if published:
        texts["README.md"] = INDEX_LINE.sub(r"\1", (root / "README.md").read_text(encoding="utf-8"))
    return texts


def cut_changelog(text: str, version: str, day: str) -> str:
    """Give what is unreleased the version and the day, and begin a new list."""
    head, mark, rest = text.partition(UNRELEASED)
    newest = rest.partition("\n## ")[0]
    if not mark or "\n- " not in newest:
        raise NotReady("nothing stands under '## Unreleased' in CHANGELOG.md: say what is new for users")
    return f"{head}{UNRELEASED}\n## {version} ({day})\n{rest}"


def index_readme(text: str, repository: str, version: str) -> str:
    """The README as a package index shows it: absolute links where the repository has an address, else none."""

    def target(path: str) -> str | None:
        return f"{repository}/raw/v{version}/{path}" if repository else None

    def page(path: str) -> str | None:
        return f"{repository}/blob/v{version}/{path}" if repository else None

    text = INDEX_LINE.sub(r"\1", text)
    pictures = re.sub(r'<img src="([^"]+)" alt="([^"]*)">', lambda found: picture(found, target), text)
    return rewrite_links(pictures, "README.md", page)


def picture(found: re.Match[str], target: Target) -> str:
    address = target(found[1])
    return f'<img src="{address}" alt="{found[2]}">' if address else ""


def build(root: Path, texts: Mapping[str, str], version: str, out: Path) -> list[Path]:
    """Build sdist, wheel and SBOM of the last commit with these changes, and check them."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "septet"
        call("git", "clone", "-q", "--no-hardlinks", str(root), str(copy))
        for path, text in texts.items():
            (copy / path).write_text(text, encoding="utf-8")
        project = tomllib.loads(texts["pyproject.toml"])["project"]
        repository = str(project.get("urls", {}).get("Repository", "")).rstrip("/")
        readme = copy / "README.md"
        readme.write_text(
            index_readme(readme.read_text(encoding="utf-8"), repository, version), encoding="utf-8"
        )
        uv = str(Path(sys.executable).with_name("uv"))
        call(uv, "lock", "--check", cwd=copy)
        call(uv, "build", "-q", "--out-dir", str(out), cwd=copy)
        bom = out / f"septet-{version}.cdx.json"
        options = ("--locked", "--no-dev", "--all-extras", "--no-emit-project", "--format", "cyclonedx1.5")
        bom.write_text(call(uv, "export", "-q", *options, cwd=copy), encoding="utf-8")
    made = [out / f"septet-{version}-py3-none-any.whl", out / f"septet-{version}.tar.gz"]
    for archive in made:
        check_metadata(archive, version)
    return [*made, bom]


def check_metadata(archive: Path, version: str) -> None:
    """What an index checks: valid fields, the right version, a description that leads nowhere wrong."""
    content = metadata_of(archive)
    Metadata.from_email(content, validate=True)
    message = message_from_bytes(content)
    description = str(message.get_payload())
    if message["Version"] != version:
        raise NotReady(f"{archive.name} says version {message['Version']}")
    if message["Description-Content-Type"] != "text/markdown" or "# Septet" not in description:
        raise NotReady(f"{archive.name} has no description in Markdown")
    if found := LINK.search(description):
        raise NotReady(f"{archive.name}: '{found[0]}' leads nowhere on an index")


def metadata_of(archive: Path) -> bytes:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")))
    with tarfile.open(archive) as sdist:
        name = next(name for name in sdist.getnames() if name.count("/") == 1 and name.endswith("/PKG-INFO"))
        member = sdist.extractfile(name)
        assert member is not None, "it is a file"
        return member.read()


def release(root: Path, version: str, day: str, dry_run: bool, tag: bool) -> None:
    check_tree(root, version)
    texts = changed_files(root, version, day, published=tag)
    (root / "dist").mkdir(exist_ok=True)
    for path in build(root, texts, version, root / "dist"):
        print(f"{path.relative_to(root)}  {path.stat().st_size:,} bytes")
    if dry_run:
        print(f"{version} can be released; nothing was changed outside of dist/")
        return
    for path, text in texts.items():
        (root / path).write_text(text, encoding="utf-8")
    call("git", "commit", "-qam", f"Septet {version}", cwd=root)
    if tag:
        call("git", "tag", "-a", f"v{version}", "-m", f"Septet {version}", cwd=root)
    print(
        f"committed{f' and tagged v{version}' if tag else ''}; upload with: uv publish dist/septet-{version}*"
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="release.py", description="Make a release.")
    parser.add_argument("version")
    parser.add_argument("--dry-run", action="store_true", help="build and check, change nothing")
    parser.add_argument("--no-tag", action="store_true", help="commit without a tag")
    options = parser.parse_args(arguments)
    try:
        day = f"{datetime.now(UTC).date()}"
        release(ROOT, options.version, day, options.dry_run, not options.no_tag)
    except NotReady as reason:
        sys.stderr.write(f"no release: {reason}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
