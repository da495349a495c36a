"""A process that stays, and serves many chats: the garbage collector should not cost it a tenth of its time."""

import gc

OFTEN = 50_000
"""Objects made before the youngest are looked through, instead of 700: next to nothing of what we make has cycles."""


def settle() -> None:
    """What is loaded by now stays for good, and is never looked through again."""
    gc.freeze()
    gc.set_threshold(OFTEN, 10, 10)
