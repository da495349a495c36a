"""An immutable sequence with cheap append: it returns a new one in constant time."""

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class Trail(Sequence[T], Generic[T]):
    """A frozen view of the first `length` items of a shared list.

    Folding n events into tuples copies n²/2 items. Here the newest view extends the shared list in
    place; an older view that is extended again (a fork) copies once.
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: Sequence[T] = ()) -> None:
        self._items = list(items)
        self._length = len(self._items)

    def plus(self, item: T) -> "Trail[T]":
        longer = Trail[T]()
        longer._items = self._items if len(self._items) == self._length else self._items[: self._length]
        longer._items.append(item)
        longer._length = self._length + 1
        return longer

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return self._items[: self._length][index]
        return self._items[range(self._length)[index]]

    def __iter__(self) -> Iterator[T]:
        return (self._items[i] for i in range(self._length))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trail) and self[:] == other[:]

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # compared by content, like a list

    def __repr__(self) -> str:
        return f"Trail({self[:]!r})"
