"""Every command that a page shows is run, in the order of the page; those that are not stand in `snippets_not_run.txt`.

A page is one shell script in a folder of its own. Its chats have scripted members; nobody sits at a terminal, so that a
command that asks ends with exit code 4.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from cli.commands import PATIENCE, SCRIPTS, SMALL, Septet

ROOT = Path(__file__).parent.parent
PAGES = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if path.parent.name not in ("measurements", "decisions", "reference")
]
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
ASKS = 4
MODELS = {
    "first-program.md": f"scripted:{SCRIPTS / 'primes.yaml'}",
    "first-repository.md": f"scripted:{SCRIPTS / 'cart.yaml'}",
    "assistant.md": f"scripted:{SCRIPTS / 'assistant.yaml'}",
}
"""What thinks on the pages where `small.yaml` does not."""
TRAP = """\
trap 'code=$?; echo "FAILED $code $BASH_COMMAND" >&3' ERR
"""


class Skipped(NamedTuple):
    page: str
    line: str
    reason: str


def read_not_run() -> list[Skipped]:
    text = (ROOT / "tests" / "snippets_not_run.txt").read_text(encoding="utf-8")
    rows = (line.split(" | ", 2) for line in text.splitlines() if line and not line.startswith("#"))
    return [Skipped(page, line, reason) for page, line, reason in rows]


NOT_RUN = read_not_run()


def name_of(page: Path) -> str:
    return page.relative_to(ROOT / "docs").as_posix() if ROOT / "docs" in page.parents else page.name


def lines_of(page: Path) -> Iterator[str]:
    """The lines of a page's shell blocks, without indentation."""
    for indent, language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "sh":
            yield from (line.removeprefix(indent) for line in text.splitlines())


def command_of(line: str) -> str:
    return re.sub(r"\s+# .*", "", line).strip()


def script_of(page: Path) -> str:
    """What is run of a page."""
    skipped = {one.line for one in NOT_RUN if one.page == name_of(page)}
    lines = [line for line in lines_of(page) if command_of(line) not in skipped]
    return "\n".join(line.replace("NAME", "analog-clock") for line in lines)


WITH_COMMANDS = [page for page in PAGES if script_of(page).strip()]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what pages take for granted: a chat that is done, data, snippets."""
    folder = tmp_path_factory.mktemp("pages") / "home"
    done = Septet(folder)("run", "an analog clock", "-m", SMALL, "--yes", "-q", "-n", "analog-clock")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
def test_the_commands_of_a_page_work(page: Path, home: Path, tmp_path: Path) -> None:
    place = tmp_path / "work"
    shutil.copytree(home, tmp_path / "me" / "septet")
    for name, text in FILES.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text, encoding="utf-8")
    environment = {
        **Septet(tmp_path / "me" / "septet").environment,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "SEPTET_MODEL": MODELS.get(page.name, SMALL),
    }
    done = subprocess.run(
        ["bash", "-c", f"exec 3>&1 >/dev/null\n{TRAP}{script_of(page)}\nexit 0\n"],
        cwd=place,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    failed = re.findall(r"^FAILED (\d+) (.*)", done.stdout, re.MULTILINE)
    assert [(code, line) for code, line in failed if not is_expected(int(code), line)] == [], done.stderr


def is_expected(code: int, line: str) -> bool:
    """Whether a command waits for its person, or its program ends so."""
    return line.startswith("septet ") and (f"exit {code}" in line or (code == ASKS and "--yes" not in line))


def test_what_is_not_run_is_on_its_page_and_has_a_reason() -> None:
    shown = {(name_of(page), command_of(line)) for page in PAGES for line in lines_of(page)}
    assert [one for one in NOT_RUN if (one.page, one.line) not in shown or not one.reason.strip()] == []


def test_no_command_hides_outside_of_the_shell_blocks() -> None:
    """A block with `septet …` lines says that it is shell, so that it is run."""
    hidden = [
        f"{name_of(page)}: {line}"
        for page in PAGES
        for _, language, text in BLOCK.findall(page.read_text(encoding="utf-8"))
        if language not in ("sh", "python", "yaml", "json", "text")
        for line in text.splitlines()
        if re.match(r"\s*(\$ )?septet [a-z-]+", line)
    ]
    assert hidden == []


FILES = {
    "log.csv": "device,clicks\nphone,3\n",
    "columns.txt": "device: what it was seen on\n",
    "../me/.gitconfig": "[user]\nname = me\nemail = me@example.org\n",
    "../me/snippets/clock.py": '"""Draw the hands of a clock."""\n\n\ndef draw() -> None:\n    """Draw."""\n',
    "team.yaml": "members:\n- role: planner\n- role: proxy\n- role: coder\n- role: runner\n- role: reviewer\n",
    "pictures/one.txt": "a picture\n",
}
