"""Typical mistakes on the command line: each ends in one line with cause and remedy, and starts nothing.

`mistakes.txt` has the table: the exit code, what is typed, and the whole message.
"""

import io
import logging
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from septet.cli.main import main


class Mistake(NamedTuple):
    code: int
    typed: str
    message: str


def read_table() -> list[Mistake]:
    rows = (
        line.split(" | ", 2) for line in Path(__file__).with_name("mistakes.txt").read_text().splitlines()
    )
    return [Mistake(int(code), typed.strip(), message) for code, typed, message in rows]


TABLE = read_table()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without a repository, with some files that are no team, no plan and no data."""
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_OPENAI_API_KEY", "SEPTET_MODEL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("SEPTET_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(logging, "lastResort", logging.lastResort)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("hello\n")
    (tmp_path / "bad.yaml").write_text("members: [\n")
    (tmp_path / "odd.yaml").write_text("members: [{role: codr}]\n")
    return tmp_path


def test_the_table_has_no_mistake_twice() -> None:
    assert len({mistake.typed for mistake in TABLE}) == len(TABLE) >= 80


@pytest.mark.parametrize("mistake", TABLE, ids=lambda mistake: mistake.typed)
def test_a_mistake_ends_in_one_line(
    mistake: Mistake, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["septet", *shlex.split(mistake.typed)])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    line = printed.err.replace(str(folder), ".").removesuffix("\n")
    assert (ended.value.code, line, printed.out) == (mistake.code, f"septet: {mistake.message}", "")
    assert not list((folder / "home").glob("work/*")), "a mistake starts no chat"
