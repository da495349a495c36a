"""Hypothesis strategies for every event, read off the types themselves: a new field is covered at once."""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st

from septet.domain.events import Event, Recorded

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
PLAIN: dict[object, st.SearchStrategy[object]] = {
    str: TEXTS,
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    NoneType: st.none(),
    object: st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
}


def values(kind: object) -> st.SearchStrategy[object]:
    """Anything of the given type."""
    if kind in PLAIN:
        return PLAIN[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        return st.one_of([values(one) for one in inner])
    if origin is Literal:
        return st.sampled_from(inner)
    if origin is tuple:
        return st.lists(values(inner[0]), max_size=3).map(tuple)
    if origin in {dict, Mapping}:
        return st.dictionaries(values(inner[0]), values(inner[1]), max_size=3)
    return structs(kind)


def structs(kind: object) -> st.SearchStrategy[object]:
    assert isinstance(kind, type), f"no strategy for {kind}"
    assert issubclass(kind, msgspec.Struct), f"no strategy for {kind}"
    fields = {field.name: values(field.type) for field in msgspec.structs.fields(kind)}
    return st.builds(kind, **fields)


def of(kind: type[Event]) -> st.SearchStrategy[Event]:
    return structs(kind).filter(lambda made: isinstance(made, kind))  # pyright: ignore[reportReturnType]  # narrowed by the filter


EVENTS = st.one_of([of(kind) for kind in get_args(Event)])


@st.composite
def logs(draw: st.DrawFn, longest: int = 12) -> list[Recorded]:
    """A chat's log: any events in any order."""
    events = draw(st.lists(EVENTS, max_size=longest))
    return [
        Recorded(chat="clock", seq=seq, at=float(seq), event=event)
        for seq, event in enumerate(events, start=1)
    ]
