"""Every rung of this machine, and a workspace."""

from pathlib import Path

import pytest
from sandboxes.rungs import QUICK, RUNGS

from septet.ports import Sandbox


@pytest.fixture(params=QUICK)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return RUNGS[request.param]()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work space"
    folder.mkdir()
    return folder
