"""The codec: every event survives the way through it, and what is no event of ours is named."""

from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from domain.event_strategies import EVENTS, TEXTS, of
from hypothesis import given, settings
from hypothesis import strategies as st

from septet.domain import codec
from septet.domain.codec import decode, decode_event, encode, encode_event, kind_of
from septet.domain.events import (
    ChatEnded,
    Event,
    PersonSpoke,
    Recorded,
    RunFinished,
    RunStarted,
    TurnOpened,
    VersionWritten,
)
from septet.domain.messages import Usage
from septet.domain.plans import CommandSucceeds, FileExists, Judged, PictureExists, TestsPass
from septet.domain.reduce import fold
from septet.errors import LogDamaged

FIXTURE = Path(__file__).with_name("fixtures") / "log-v1.jsonl"

TIMES = st.floats(946_684_800.0, 4_102_444_800.0)
"""Seconds since 1970, in this century."""
RECORDED = st.builds(Recorded, chat=TEXTS, seq=st.integers(1, 2**53), at=TIMES, event=EVENTS)
CHECKS = [
    TestsPass(target="test_clock.py"),
    CommandSucceeds(command="python clock.py --at 3:00", prints="3:00"),
    FileExists(path="clock.py"),
    PictureExists(path="clock.png"),
    Judged(by="person"),
    Judged(),
]
FIRST_EVENTS = {
    *("chat_started", "chat_continued", "chat_ended", "turn_opened", "step_granted", "stop_requested"),
    *("model_answered", "reply_refused", "person_spoke", "plan_proposed", "plan_approved"),
    *("version_written", "run_started", "run_finished", "evidence_found", "review_given"),
    "decision_recorded",
}


@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
@settings(max_examples=25)  # of each kind
@given(data=st.data())
def test_every_event_survives(kind: type[Event], data: st.DataObject) -> None:
    event = data.draw(of(kind))

    assert decode_event(kind_of(event), encode_event(event)) == event


@given(RECORDED)
def test_a_line_is_the_whole_truth(recorded: Recorded) -> None:
    line = encode(recorded)
    again = decode(line)

    assert b"\n" not in line
    assert abs(again.at - recorded.at) < 1e-5, "a line's time is told in microseconds"
    assert msgspec.structs.replace(again, at=recorded.at) == recorded
    assert encode(again) == line


@given(RECORDED)
def test_a_line_is_a_cloud_event(recorded: Recorded) -> None:
    line = msgspec.json.decode(encode(recorded), type=dict[str, object])

    assert line["specversion"] == "1.0"
    assert line["id"] == f"{recorded.chat}:{recorded.seq}"
    assert line["type"] == f"septet.{kind_of(recorded.event)}"
    assert {"source", "time", "data"} <= line.keys()


def test_who_acted_is_the_subject() -> None:
    recorded = Recorded(chat="clock", seq=1, at=0.0, event=TurnOpened(speaker="coder"))

    assert msgspec.json.decode(encode(recorded), type=dict[str, object])["subject"] == "coder"


@given(st.binary() | TEXTS)
def test_any_garbage_is_named_and_nothing_else_escapes(garbage: bytes | str) -> None:
    with pytest.raises(LogDamaged):
        decode(garbage)


@given(EVENTS, st.binary(max_size=40).filter(lambda garbage: not garbage.lstrip().startswith(b"{")))
def test_garbage_in_the_data_is_named(event: Event, garbage: bytes) -> None:
    with pytest.raises(LogDamaged, match="cannot be read"):
        decode_event(kind_of(event), garbage)


def test_an_unknown_event_asks_for_an_update() -> None:
    with pytest.raises(LogDamaged, match=r"unknown event 'teleported'.*update"):
        decode_event("teleported", b"{}")


def test_a_newer_format_asks_for_an_update() -> None:
    newer = codec.FORMAT + 1
    with pytest.raises(LogDamaged, match=rf"format {newer}.*update Septet"):
        decode_event("person_spoke", b'{"text": "hello"}', version=newer)


def test_a_format_that_never_was_is_named() -> None:
    with pytest.raises(LogDamaged, match="no Septet ever wrote"):
        decode_event("person_spoke", b'{"text": "hello"}', version=0)


def test_an_older_format_is_lifted_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def rename_kind(kind: str, data: codec.Data) -> tuple[str, codec.Data]:
        return ("person_spoke" if kind == "said" else kind), data

    def rename_field(kind: str, data: codec.Data) -> tuple[str, codec.Data]:
        return kind, {"text": data["words"]}

    monkeypatch.setattr(codec, "FORMAT", 3)
    monkeypatch.setattr(codec, "UPCASTERS", {1: rename_kind, 2: rename_field})

    assert decode_event("said", b'{"words": "hello"}', version=1) == PersonSpoke(text="hello")
    assert decode_event("person_spoke", b'{"words": "hello"}', version=2) == PersonSpoke(text="hello")


@pytest.mark.parametrize(
    ("text", "purpose", "about"),
    [
        ("run", "run", ""),
        ("rehearsal", "script", "rehearsal"),
        ("tests", "tests", ""),
        ("tests alone", "tests alone", ""),
        ("check P2", "check", "P2"),
        ("script my plots/mean.py", "script", "my plots/mean.py"),
    ],
)
def test_the_first_format_told_the_purpose_of_a_run_in_words(text: str, purpose: str, about: str) -> None:
    fields = {"id": "1", "purpose": text, "command": "x", "tree": "t"}
    started = decode_event("run_started", msgspec.json.encode(fields), version=1)
    assert isinstance(started, RunStarted)
    assert (started.purpose, started.about) == (purpose, about)
    result = {"exit_code": 0}
    finished = decode_event("run_finished", msgspec.json.encode({**fields, "result": result}), version=1)
    assert isinstance(finished, RunFinished)
    assert (finished.purpose, finished.about) == (purpose, about)


@pytest.mark.parametrize(
    ("note", "found", "confirmation"),
    [
        ("the clock, with hands", False, None),
        ("as found in the workspace", True, None),
        ("2 candidates behave alike on 9 calls", False, "agreed"),
        ("other candidates do not confirm it on calls like the plan's", False, "unconfirmed"),
        ("other candidates do not confirm it: f(1) gives 1 here and 2 elsewhere", False, "contradicted"),
    ],
)
def test_the_first_format_told_the_origin_of_a_version_in_words(
    note: str, found: bool, confirmation: str | None
) -> None:
    fields: codec.Data = {"number": 1, "files": [], "tree": "t", "note": note}
    version = decode_event("version_written", msgspec.json.encode(fields), version=1)
    assert isinstance(version, VersionWritten)
    assert version.note == note
    assert version.found == found
    assert (version.confirmation.verdict if version.confirmation else None) == confirmation
    if version.confirmation and confirmation == "contradicted":
        assert version.confirmation.detail == "f(1) gives 1 here and 2 elsewhere"


def test_the_first_format_stays_readable() -> None:
    log = [decode(line) for line in FIXTURE.read_bytes().splitlines()]
    state = fold(log)

    assert {kind_of(recorded.event) for recorded in log} >= FIRST_EVENTS
    assert [recorded.seq for recorded in log] == list(range(1, len(log) + 1))
    assert log[0].at == datetime(2026, 11, 15, 9, 50, 0, 123456, UTC).timestamp()
    assert state.goal == "an analog clock"
    assert state.plan.current is not None
    assert [item.check for item in state.plan.current.items] == CHECKS
    assert [version.number for version in state.work.versions] == [1, 2]
    assert state.work.review == log[-4].event
    assert state.spending.members["coder"].usage == Usage(prompt=900, cached=120, completion=300)
    assert state.work.artefacts == {"clock.png": "ab" * 32}
    assert state.ended == ChatEnded(reason="done", detail="every requirement is met")
