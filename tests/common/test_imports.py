"""Imports without the collector."""

import gc
import sys
from collections.abc import Generator
from pathlib import Path
from weakref import ref

import pytest

from septet.common.imports import import_uncollected


class Cycle:
    """Garbage that only the collector finds."""

    itself: "Cycle | None" = None


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """A module that says whether the collector is on while it is imported, and one that fails.

    Another test in this process may have frozen its objects, as `autocoder()` does; here nothing is frozen at first.
    """
    gc.unfreeze()
    (tmp_path / "watched.py").write_text("import gc\nCOLLECTS = gc.isenabled()\n")
    (tmp_path / "broken.py").write_text("raise ValueError('broken')\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield "watched"
    sys.modules.pop("watched", None)


def test_the_collector_rests_while_modules_are_imported_and_goes_on_after(watched: str) -> None:
    module = import_uncollected(watched)
    assert (module.COLLECTS, gc.isenabled()) == (False, True)


def test_the_collector_goes_on_after_an_import_that_fails(watched: str) -> None:
    with pytest.raises(ValueError, match="broken"):
        import_uncollected("broken")
    assert gc.isenabled()


def test_a_program_without_a_collector_keeps_none(watched: str) -> None:
    gc.disable()
    try:
        import_uncollected(watched)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_was_imported_counts_as_old_and_is_still_collected(watched: str) -> None:
    import_uncollected(watched)
    assert gc.get_count()[0] < 1000, "the next pass does not look through what was imported"
    assert gc.get_freeze_count() == 0
    sys.modules[watched].__dict__["cycle"] = cycle = Cycle()
    gone = ref(cycle)
    cycle.itself = cycle
    del cycle, sys.modules[watched]
    gc.collect()
    assert gone() is None


def test_what_a_program_has_frozen_stays_frozen(watched: str) -> None:
    gc.freeze()
    try:
        import_uncollected(watched)
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
