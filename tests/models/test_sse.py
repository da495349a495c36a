"""Server-sent events: any split of the bytes gives the same events."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from septet.models.sse import EventStream

LINE_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
DATA = st.lists(
    st.binary(max_size=30).filter(lambda line: b"\n" not in line and b"\r" not in line),
    min_size=1,
    max_size=3,
)


def events_of(pieces: list[bytes]) -> list[bytes]:
    stream = EventStream()
    found = [data for piece in pieces for data in stream.feed(piece)]
    return found + stream.end()


def split(text: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[start:end] for start, end in pairwise(places)]


@given(
    events=st.lists(st.tuples(DATA, st.booleans(), st.booleans()), max_size=8),
    end=LINE_ENDS,
    cuts=st.lists(st.integers(min_value=0), max_size=40),
    marked=st.booleans(),
)
def test_events_survive_any_split_and_line_end(
    events: list[tuple[list[bytes], bool, bool]], end: bytes, cuts: list[int], marked: bool
) -> None:
    text = b"\xef\xbb\xbf" if marked else b""
    for lines, commented, named in events:
        text += (b": ping" + end) if commented else b""
        text += (b"event: message" + end) if named else b""
        text += b"".join(b"data: " + line + end for line in lines) + end
    assert events_of(split(text, cuts)) == [b"\n".join(lines) for lines, _, _ in events]


@given(text=st.binary(max_size=200), cuts=st.lists(st.integers(min_value=0), max_size=40))
def test_any_bytes_at_all_give_the_same_events_however_they_are_cut(text: bytes, cuts: list[int]) -> None:
    assert events_of(split(text, cuts)) == events_of([text])


@given(
    text=st.lists(
        st.sampled_from(
            [b"data: a", b"data:", b"data", b":", b"\r", b"\n", b"\r\n", b"\xef\xbb\xbf", b"id: 1"]
        ),
        max_size=30,
    ).map(b"".join)
)
def test_one_byte_at_a_time_is_the_same_as_all_at_once(text: bytes) -> None:
    assert events_of([text[at : at + 1] for at in range(len(text))]) == events_of([text])


def test_the_forms_of_a_data_line() -> None:
    text = b"data:x\n\ndata\n\ndata:  two spaces\n\nid: 1\n\n: comment\n\ndata: a\ndata: b\n\n"
    assert events_of([text]) == [b"x", b"", b" two spaces", b"a\nb"]


def test_the_last_event_counts_without_its_blank_line_but_not_without_its_line_end() -> None:
    assert events_of([b"data: a\n\ndata: b\n"]) == [b"a", b"b"]
    assert events_of([b"data: a\n\ndata: b"]) == [b"a"]
