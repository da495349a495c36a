"""Imports without the collector."""

import gc
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from septet.common.imports import import_uncollected


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """A module that says whether the collector is on while it is imported, and fails when it is asked to."""
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
