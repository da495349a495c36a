"""The autocoder writes music. The file is read back by a library that had no part in writing it."""

from pathlib import Path

import mido  # pyright: ignore[reportMissingTypeStubs]  # it has none
import msgspec
from cli.commands import Septet


class Sign(msgspec.Struct):
    """A MIDI message, as far as it matters here."""

    type: str
    channel: int = -1
    note: int = -1
    velocity: int = 0
    program: int = -1


def signs(song: mido.MidiFile) -> list[Sign]:
    return [msgspec.convert(vars(message), Sign) for message in iter(song)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # untyped library


def test_the_seeds_goal_gives_music(septet: Septet, tmp_path: Path) -> None:
    done = septet("demo", "midi", "-C", "music", "--json")
    assert done.returncode == 0, done.stderr
    assert '"the code is wrong, by P1"' in done.stdout
    song = mido.MidiFile(tmp_path / "music" / "random.mid")
    sounding: set[tuple[int, int]] = set()
    notes, together, programs = 0, 0, set[int]()
    for sign in signs(song):
        if sign.type == "note_on" and sign.velocity:
            notes += 1
            sounding.add((sign.channel, sign.note))
        elif sign.type in ("note_on", "note_off"):
            sounding.discard((sign.channel, sign.note))
        elif sign.type == "program_change":
            programs.add(sign.program)
        together = max(together, len({channel for channel, _ in sounding}))
    assert notes >= 500
    assert together >= 2
    assert len(programs) >= 2
    assert song.length >= 120
