"""The base class of domain values: frozen, keyword-only, compared by content, cheap to encode."""

from typing import dataclass_transform

from msgspec import Struct


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Value(Struct, frozen=True, omit_defaults=True, gc=False):
    """An immutable value. Defaults are left out of the log, so a released default must never change.

    Immutable values cannot form cycles, so the garbage collector need not track them.
    """
