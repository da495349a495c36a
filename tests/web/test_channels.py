"""Streams: whoever listens, from whenever on, puts together exactly what was said."""

from hypothesis import given
from hypothesis import strategies as st

from septet.agents.ask import Live
from septet.domain.events import ModelAnswered, Recorded, TurnOpened
from septet.domain.messages import Answer
from septet.web.channels import MAX_KEPT, StreamPiece, Streams, utf16_length


class Ear:
    """The page's rule: pieces are placed by where they stand."""

    def __init__(self) -> None:
        self.make = -1
        self.length = 0
        self.text = ""

    def hear(self, piece: StreamPiece) -> None:
        if piece.make > self.make or piece.at > self.length:
            self.make, self.length, self.text = piece.make, piece.at, ""
        fresh = piece.text.encode("utf-16-le")[(self.length - piece.at) * 2 :].decode("utf-16-le")
        self.length += utf16_length(fresh)
        self.text += fresh


@given(
    st.lists(st.text(min_size=1, max_size=5), max_size=20), st.integers(0, 20), st.sets(st.integers(0, 20))
)
def test_a_late_listener_misses_nothing_and_hears_nothing_twice(
    words: list[str], joins: int, flushes: set[int]
) -> None:
    streams, early, late = Streams(), Ear(), Ear()
    listening = [early]
    for number, word in enumerate(words):
        streams.add(Live(speaker="coder", text=word))
        if number in flushes:
            tell(streams, listening)
        if number == joins:
            listening.append(late)
            for piece in streams.snapshot():
                late.hear(piece)
    tell(streams, listening)
    assert early.text == "".join(words)
    assert late.text == ("".join(words) if late in listening else "")


def tell(streams: Streams, listening: list[Ear]) -> None:
    for piece in streams.take_unsent():
        for ear in listening:
            ear.hear(piece)


def test_a_restart_voids_what_came_before() -> None:
    streams, ear = Streams(), Ear()
    streams.add(Live(speaker="coder", text="wrong"))
    tell(streams, [ear])
    streams.add(Live(speaker="coder", restarted=True))
    streams.add(Live(speaker="coder", text="right"))
    tell(streams, [ear])
    assert ear.text == "right"
    assert [piece.text for piece in streams.snapshot()] == ["right"]


def test_what_is_recorded_is_no_longer_live() -> None:
    streams = Streams()
    streams.add(Live(speaker="coder", text="all of it"))
    streams.add(Live(speaker="planner", text="still at it"))
    answered = ModelAnswered(role="coder", answer=Answer(text="all of it"))
    streams.drop_recorded(Recorded(chat="c", seq=1, at=0.0, event=answered))
    assert [piece.speaker for piece in streams.take_unsent()] == ["planner"]


def test_what_comes_late_is_gone_when_another_turn_begins() -> None:
    streams = Streams()
    answered = ModelAnswered(role="planner", answer=Answer(text="a plan"))
    streams.drop_recorded(Recorded(chat="c", seq=1, at=0.0, event=answered))
    streams.add(Live(speaker="planner", text="a plan"))
    streams.add(Live(speaker="coder", text="ahead of its turn"))
    streams.drop_recorded(Recorded(chat="c", seq=2, at=0.0, event=TurnOpened(speaker="coder")))
    assert [piece.speaker for piece in streams.take_unsent()] == ["coder"]


def test_of_endless_output_the_end_is_kept() -> None:
    streams, late = Streams(), Ear()
    for number in range(100):
        streams.add(Live(speaker="runner", output=f"{number:04}" + "x" * 9_996))
        streams.take_unsent()
    for piece in streams.snapshot():
        late.hear(piece)
    assert len(late.text) == MAX_KEPT
    assert late.length == 1_000_000
