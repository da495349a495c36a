"""The base of every domain value: frozen, made by keyword, compared by content, cheap to encode."""

from typing import dataclass_transform

from msgspec import Struct


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Value(Struct, frozen=True, omit_defaults=True, gc=False):
    """A fact that never changes. Defaults are left out of the log: a default, once released, stays.

    What cannot change cannot be part of a cycle: the garbage collector need not look at it.
    """
