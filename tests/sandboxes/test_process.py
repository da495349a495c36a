"""What a program prints is kept up to a limit, whatever the pieces are in which it comes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.domain.runs import Limits
from septet.sandboxes.limits import exceeds_disk
from septet.sandboxes.process import Capture, RunMonitor
from septet.sandboxes.survey import Survey


def captured(keep: int, content: bytes, piece: int) -> str:
    capture = Capture(keep)
    for start in range(0, len(content), piece):
        capture.take(content[start : start + piece])
    assert capture.total == len(content)
    return capture.text()


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 100])
@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"abcdefg", "abcdefg"),
        (b"abcdefghi", "abcdefghi"),
        (b"abcdefghij", "abcde\n… 1 bytes left out …\nghij"),
        (b"abcdefghijklmnopqrstuvwxyz", "abcde\n… 17 bytes left out …\nwxyz"),
    ],
)
def test_as_much_as_may_be_kept_is_whole_and_one_byte_more_is_head_and_tail(
    content: bytes, shown: str, piece: int
) -> None:
    assert captured(9, content, piece) == shown


@given(st.binary(max_size=60), st.integers(2, 20), st.integers(1, 60), st.integers(1, 60))
def test_the_pieces_make_no_difference(content: bytes, keep: int, one: int, other: int) -> None:
    assert captured(keep, content, one) == captured(keep, content, other)


@pytest.mark.parametrize("before", range(4))
def test_no_character_is_cut_in_two(before: int) -> None:
    content = b"a" * before + "\N{GRINNING FACE}".encode() * 9
    head, _, end = captured(17, content, 4).splitlines()
    assert set(head.removeprefix("a" * before)) == set(end) == {"\N{GRINNING FACE}"}


def test_output_is_stopped_behind_its_limit_and_not_at_it() -> None:
    monitor = RunMonitor.of(Limits(output=10), None)
    monitor.add_output("stdout", b"x" * 10)
    monitor.add_output("stderr", b"x" * 10)
    assert monitor.stopped_by is None
    monitor.add_output("stderr", b"x")
    assert monitor.stopped_by == "output"


@pytest.mark.parametrize(
    ("space", "entries", "exceeds"),
    [(100_000, 5, False), (100_001, 5, True), (100_000, 6, True), (0, 0, False), (200_000, 0, True)],
)
def test_a_disk_is_full_behind_its_limit_and_not_at_it_in_bytes_and_in_entries(
    space: int, entries: int, exceeds: bool
) -> None:
    before = Survey({}, 7_000, 3)
    after = Survey({}, 7_000 + space, 3 + entries)
    assert exceeds_disk(before, after, Limits(disk=100_000)) is exceeds
