"""A fresh home for every test."""

from pathlib import Path

import pytest
from cli.commands import Septet


@pytest.fixture
def septet(tmp_path: Path) -> Septet:
    return Septet(tmp_path / "home")
