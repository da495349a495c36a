"""Imports of many modules at once, without Python's cyclic collector: it looks through what they all keep."""

import gc
from importlib import import_module
from types import ModuleType


def import_uncollected(name: str) -> ModuleType:
    """The module; it and what it imports make hardly any garbage, and a fifth of their time went into the search."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        make_old()
        if collects:
            gc.enable()


def make_old() -> None:
    """Count all objects as old: else the next three passes of the collector look through what was just imported.

    Nothing is kept from it: a full pass still finds garbage in all of them. What a program has frozen stays frozen.
    """
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
