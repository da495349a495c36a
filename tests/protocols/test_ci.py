"""Pipelines: a goal and a review without questions, with reports that machines read."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from septet.cli.ci import review
from septet.protocols.ci import ReviewFinding, failing, findings_in, junit, sarif

SCRIPTS = Path(__file__).parent.parent / "scripts"
BEFORE = "def total(prices):\n    return sum(prices)\n"
AFTER = "def total(prices):\n    return sum(prices[1:])\n"
REVIEW = """about: A reviewer who finds a defect with a test, one that is none, and says something without any.
turns:
- role: proxy
  calls:
  - name: SendMessage
    arguments: {recipient: assistant, message: Look at the change.}
- role: assistant
  calls:
  - name: edit
    arguments: {edits: [{path: shop.py, old: "prices[1:]", new: "prices"}]}
- role: assistant
  say: The first price is left out.
- role: proxy
  say: |
    I looked at the change.

    verdict: revise
    - [must] (shop.py:2): the first price is left out
    ```python
    from shop import total


    def test_total():
        assert total([1, 2]) == 3
    ```
    - [must] (shop.py:1): an empty list fails
    ```python
    from shop import total


    def test_empty():
        assert total([]) == 0
    ```
    - [should]: nobody has said what a price is
"""


def septet(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "SEPTET_HOME": str(folder / "home"),
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    command = [sys.executable, "-m", "septet", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "shop.py").write_text(BEFORE)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "a shop")
    git(folder, "switch", "-qc", "change")
    (folder / "shop.py").write_text(AFTER)
    git(folder, "commit", "-qam", "a change")
    return folder


def test_a_goal_in_a_pipeline_ends_with_reports_and_a_code(tmp_path: Path) -> None:
    model = f"scripted:{SCRIPTS / 'quick.yaml'}"
    done = septet(
        tmp_path, "ci", "greet", "-m", model, "--json", "--junit", "out.xml", "-C", str(tmp_path / "made")
    )
    assert done.returncode == 0, done.stderr
    assert msgspec.json.decode(done.stdout)["status"] == "done"
    assert (tmp_path / "made" / "hello.py").exists()
    report = ET.fromstring((tmp_path / "out.xml").read_text())
    assert (report.get("tests"), report.get("failures")) == ("2", "0")


def test_a_review_proves_what_it_can_and_writes_nothing(repository: Path) -> None:
    folder = repository.parent
    (folder / "review.yaml").write_text(REVIEW)
    model = f"scripted:{folder / 'review.yaml'}"
    options = ("-C", str(repository), "-m", model, "--sarif", "r.sarif", "--junit", "r.xml", "--json")
    done = septet(folder, "review", "main", *options)
    assert done.returncode == 3, done.stderr
    report = msgspec.json.decode(done.stdout)
    assert [one["proof"] for one in report["findings"]] == ["regression", "not shown", "claim"]
    assert report["findings"][0]["path"] == "shop.py"
    results = msgspec.json.decode((folder / "r.sarif").read_bytes())["runs"][0]["results"]
    assert results[0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 2
    assert ET.fromstring((folder / "r.xml").read_text()).get("failures") == "1"
    said = subprocess.run(
        ["git", "status", "--porcelain"], cwd=repository, capture_output=True, text=True, check=True
    )
    assert said.stdout == "", "the repository is as it was"
    assert "version 1" in done.stderr
    assert "delivered" not in done.stderr
    patch = subprocess.run(
        ["git", "diff", "change", "main"], cwd=repository, capture_output=True, check=True
    ).stdout
    (folder / "fix.patch").write_bytes(patch)
    fixed = septet(folder, "review", "--diff", "fix.patch", "-C", str(repository), "-m", model, "-q")
    assert fixed.returncode == 0, fixed.stdout + fixed.stderr
    assert "not shown" in fixed.stdout
    assert septet(folder, "review", "--staged", "-C", str(repository), "-m", model).stdout == "no findings\n"
    for wrong in (["nobody"], ["--upload-pack=x"], ["main", "--staged"], []):
        refused = septet(folder, "review", *wrong, "-C", str(repository), "-m", model)
        assert refused.returncode == 2, refused.stderr
        assert "Traceback" not in refused.stderr


EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "ci"


def test_the_commands_of_the_examples_are_ones_that_septet_takes() -> None:
    texts = [(EXAMPLES / name).read_text() for name in ("github-action.yml", "pre-commit.yaml")]
    commands = [
        shlex.split(found) for text in texts for found in re.findall(r"(?:run|entry): septet (.*)", text)
    ]
    assert [command[0] for command in commands] == ["review", "review"]
    for command in commands:
        review.make_context("review", command[1:])


@pytest.mark.torture
def test_the_examples_work(repository: Path, tmp_path: Path) -> None:
    """The hook stops a commit by the real pre-commit, and the workflow is one by GitHub's schema."""
    made = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(made)], check=True)
    install = [str(made / "bin" / "pip"), "install", "-q", "pre-commit", "check-jsonschema"]
    if subprocess.run(install, capture_output=True, check=False).returncode:
        pytest.skip("pre-commit or check-jsonschema cannot be fetched")
    check = [str(made / "bin" / "check-jsonschema"), "--builtin-schema", "vendor.github-workflows"]
    subprocess.run([*check, str(EXAMPLES / "github-action.yml")], check=True)
    (tmp_path / "review.yaml").write_text(REVIEW)
    git(repository, "switch", "-qc", "hooked", "main")
    shutil.copy(EXAMPLES / "pre-commit.yaml", repository / ".pre-commit-config.yaml")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "a hook")
    (repository / "shop.py").write_text(AFTER)
    git(repository, "add", ".")
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "SEPTET_HOME": str(tmp_path / "home"),
        "SEPTET_MODEL": f"scripted:{tmp_path / 'review.yaml'}",
    }
    hooked = subprocess.run(
        [str(made / "bin" / "pre-commit"), "run"],
        cwd=repository,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert hooked.returncode == 1, hooked.stderr
    assert "the first price is left out — regression" in hooked.stdout
    assert (repository / "shop.py").read_text() == AFTER


def test_what_fails_a_pipeline_is_said_by_its_threshold() -> None:
    claim = ReviewFinding(severity="must", text="x")
    refuted = ReviewFinding(severity="must", text="x", proof="not shown")
    proven = ReviewFinding(severity="nice", text="x", proof="failing test")
    assert [failing([one], "proven") for one in (claim, refuted, proven)] == [False, False, True]
    assert [failing([one], "must") for one in (claim, refuted, proven)] == [True, False, False]
    assert not failing([claim, proven], "never")


def test_reports_hold_whatever_a_reviewer_writes() -> None:
    found = findings_in("verdict: revise\n- [must] (a b.py:0): \x00<&\ud7ff]]> ``` \x1b[0m")
    assert isinstance(found, tuple)
    report = msgspec.json.decode(sarif(found[1]))
    assert report["version"] == "2.1.0"
    place = report["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20b.py"
    assert junit("x", []).startswith(b"<?xml")
