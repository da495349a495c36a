"""Chats that version 0.1 began and that were killed on the way: today's program takes each to its end.

`old_logs/WAY.json` holds the rows that 0.1 had stored when it was killed with -9, its blobs and the files of the
folder. Only paths were made neutral.
"""

import sqlite3
from pathlib import Path

import msgspec
import pytest
from cli.commands import SCRIPTS, Septet, envelopes, kinds
from sampling import sampled

LAYOUT = """
CREATE TABLE events (
    id INTEGER PRIMARY KEY, chat TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL,
    fenced INTEGER NOT NULL, kind TEXT NOT NULL, v INTEGER NOT NULL, data BLOB NOT NULL,
    UNIQUE (chat, seq));
CREATE TABLE chats (
    chat TEXT PRIMARY KEY, seq INTEGER NOT NULL, fenced INTEGER NOT NULL,
    started REAL NOT NULL, changed REAL NOT NULL) WITHOUT ROWID;
PRAGMA user_version = 1;
"""
APPLICATION = int.from_bytes(b"SEPT")
ENDS = {
    "iterate": ("done", 0),
    "plan": ("accepted", 0),
    "pair": ("claimed", 3),
    "autocoder": ("done", 0),
    "assistant": ("answered", 0),
    "group_chat": ("rounds", 0),
}


class Fixture(msgspec.Struct):
    rows: list[tuple[int, float, int, str, int, dict[str, object]]]
    blobs: dict[str, str]
    files: dict[str, str]


def load(way: str, workspace: Path) -> Fixture:
    text = (Path(__file__).parent / "old_logs" / f"{way}.json").read_text()
    text = text.replace("@WORKSPACE@", str(workspace)).replace("@SCRIPTS@", str(SCRIPTS))
    return msgspec.json.decode(text, type=Fixture)


def lay_out(fixture: Fixture, home: Path, workspace: Path) -> None:
    """Home and folder as 0.1 left them."""
    files = {workspace / name: text for name, text in fixture.files.items()}
    blobs = {home / "blobs" / digest[:2] / digest[2:]: text for digest, text in fixture.blobs.items()}
    home.mkdir()
    for path, text in {**files, **blobs}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    log = sqlite3.connect(home / "septet.db")
    log.executescript(f"{LAYOUT}PRAGMA application_id = {APPLICATION};")
    for seq, at, fenced, kind, version, data in fixture.rows:
        log.execute(
            "INSERT INTO events(chat, seq, at, fenced, kind, v, data) VALUES ('old', ?, ?, ?, ?, ?, ?)",
            (seq, at, fenced, kind, version, msgspec.json.encode(data)),
        )
    first, last = fixture.rows[0], fixture.rows[-1]
    log.execute("INSERT INTO chats VALUES ('old', ?, ?, ?, ?)", (last[0], last[2], first[1], last[1]))
    log.commit()
    log.close()


@pytest.mark.parametrize("way", sampled(ENDS, every=2))
def test_a_chat_that_0_1_left_open_goes_on_to_its_end(way: str, septet: Septet, tmp_path: Path) -> None:
    fixture = load(way, tmp_path / "w")
    lay_out(fixture, septet.home, tmp_path / "w")
    resumed = septet("resume", "old", "--json")
    status, code = ENDS[way]
    assert resumed.returncode == code, resumed.stderr
    *_, result = envelopes(resumed.stdout)
    assert result["status"] == status
    exported = kinds(septet("export", "old", "--format", "jsonl").stdout)
    stored = [kind for _, _, _, kind, _, _ in fixture.rows]
    assert exported[: len(stored)] == stored, "what 0.1 stored is as it was"
    assert len(exported) > len(stored)
